// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/float16.hpp>
#include <lockstep/kernel/attention/attention.cuh>

#include "kernel/device_layout.hpp"
#include "kernel/values.hpp"

/// Attention on the device and on the host, for equal inputs.
namespace attention_on_cuda {

using namespace lockstep;
using lockstep_test::OnDevice;
using lockstep_test::TwinLayout;
using lockstep_test::values;
using lockstep_test::view;

struct Setting {
  TwinLayout::Kind kind;
  std::vector<std::int32_t> queries, keys;
  Index heads, head_width;
  bool causal = false, biased = false;
  double dropout = 0;
  Index heads_per_key_head = 1;
  double padding = std::numeric_limits<double>::quiet_NaN();  ///< value in padding of the inputs
  bool whole = false;  ///< the device's layouts do not say that all slots are tokens
};

template <class T>
struct Results {
  std::vector<T> out, dquery, dkey, dvalue, dbias;
  bool operator==(Results const&) const = default;
};

/// Inputs that `Stored` represents exactly.
template <class T, class Stored = T>
struct Case {
  using Sum = Accumulate<T>;
  Setting setting;
  TwinLayout queries{setting.kind, setting.queries}, keys{setting.kind, setting.keys};
  Index width = setting.heads * setting.head_width, key_width = width / setting.heads_per_key_head,
        rows = queries.rows();
  Index distances = std::max<Index>(0, queries.host().length + keys.host().length - 1);
  std::vector<T> query = input(queries, width, 1), key = input(keys, key_width, 2), value = input(keys, key_width, 3),
                 dout = input(queries, width, 4), bias = rounded(setting.heads * distances, 5, 1);

  [[nodiscard]] static std::vector<T> rounded(Index count, std::uint64_t seed, float scale) {
    std::vector<T> out;
    for (float const x : values<float>(count, seed, scale)) out.push_back(static_cast<T>(static_cast<Stored>(x)));
    return out;
  }
  [[nodiscard]] std::vector<T> input(TwinLayout const& twin, Index across, std::uint64_t seed) const {
    auto x = rounded(twin.slots() * across, seed, 2);
    for (Index i = 0; i < twin.slots() * across; ++i)
      if (!twin.host().is_token(i / across))
        x[static_cast<std::size_t>(i)] = static_cast<T>(static_cast<Sum>(setting.padding));
    return x;
  }
  [[nodiscard]] static T nan() { return static_cast<T>(std::numeric_limits<Sum>::quiet_NaN()); }
  [[nodiscard]] Results<T> start(Write write) const {
    auto const filled = [&](auto const& like) {
      return std::vector<T>(like.size(), write == Write::add ? T(1) : nan());
    };
    return {filled(query), filled(query), filled(key), filled(key), filled(bias)};
  }

  [[nodiscard]] Results<T> on_host(Write write) const {
    using Kernel = kernel::Attention<HostSpace>;
    ThreadPool pool(1);
    memory::Stream<HostSpace> const stream(pool);
    auto r = start(write);
    auto const q = queries.slots(), k = keys.slots();
    typename Kernel::template Inputs<T> const in{
        .query = view(query, q, width),
        .key = view(key, k, key_width),
        .value = view(value, k, key_width),
        .queries = queries.host(),
        .keys = keys.host(),
        .heads = setting.heads,
        .scale = 0.3,
        .causal = setting.causal,
        .query_heads_per_key_head = setting.heads_per_key_head,
        .bias = setting.biased ? view(bias, setting.heads, distances) : TensorView<T const, 2, HostSpace>{},
        .mask = kernel::DropoutMask::of(5, setting.dropout)};
    std::vector<Sum> log_sums(static_cast<std::size_t>(rows * setting.heads * in.queries.length)),
        memory(static_cast<std::size_t>(Kernel::template scratch<T>(stream, in)));
    auto const sums = view(log_sums, rows * setting.heads, in.queries.length);
    auto const scratch = view(memory, static_cast<Index>(memory.size()));
    Kernel::template forward<T>(stream, in, view(r.out, q, width), sums, scratch);
    Kernel::template backward<T>(stream, in, view(r.out, q, width), sums, view(dout, q, width),
                                 {{r.dquery.data(), write},
                                  {r.dkey.data(), write},
                                  {r.dvalue.data(), write},
                                  {setting.biased ? r.dbias.data() : nullptr, write}},
                                 scratch);
    return r;
  }

  [[nodiscard]] Results<T> on_device(memory::CudaStream const& stream, Write write) const {
    return on_device<kernel::Attention<CudaSpace>>(stream, write, [](auto) {});
  }
  /// Calls switch_to(pass) before each pass, after memory was measured.
  template <class Kernel, class Function>
  [[nodiscard]] Results<T> on_device(memory::CudaStream const& stream, Write write, Function const& switch_to) const {
    auto const r = start(write);
    auto const q = queries.slots(), k = keys.slots();
    auto query_layout = queries.device(), key_layout = keys.device();
    if (setting.whole) query_layout.lengths = key_layout.lengths = {};
    OnDevice<T> const x(query), y(key), z(value), d(dout), b(bias), out(r.out), dquery(r.dquery), dkey(r.dkey),
        dvalue(r.dvalue), dbias(r.dbias);
    typename Kernel::template Inputs<T> const in{
        .query = x.view(q, width),
        .key = y.view(k, key_width),
        .value = z.view(k, key_width),
        .queries = query_layout,
        .keys = key_layout,
        .heads = setting.heads,
        .scale = 0.3,
        .causal = setting.causal,
        .query_heads_per_key_head = setting.heads_per_key_head,
        .bias = setting.biased ? b.view(setting.heads, distances) : TensorView<T, 2, CudaSpace>{},
        .mask = kernel::DropoutMask::of(5, setting.dropout)};
    auto const forward = Kernel::template forward_scratch<T>(stream.view(), in),
               backward = Kernel::template scratch<T>(stream.view(), in);
    OnDevice<Sum> const log_sums(std::vector<Sum>(static_cast<std::size_t>(rows * setting.heads * in.queries.length))),
        memory(std::vector<Sum>(static_cast<std::size_t>(std::max(forward, backward)), Sum{7}));
    auto const sums = log_sums.view(rows * setting.heads, in.queries.length);
    auto const scratch = memory.view(backward);
    switch_to(kernel::detail::AttentionPass::forward);
    Kernel::template forward<T>(stream.view(), in, out.view(q, width), sums, memory.view(forward));
    switch_to(kernel::detail::AttentionPass::backward);
    Kernel::template backward<T>(stream.view(), in, out.view(q, width), sums, d.view(q, width),
                                 {{dquery.view(0).data, write},
                                  {dkey.view(0).data, write},
                                  {dvalue.view(0).data, write},
                                  {setting.biased ? dbias.view(0).data : nullptr, write}},
                                 scratch);
    return {out.values(), dquery.values(), dkey.values(), dvalue.values(), dbias.values()};
  }
};

/// Errors in units of T's rounding error: of the whole tensor in the Euclidean norm, and the largest of an element,
/// relative to the largest element.
template <class T>
struct Errors {
  double norm = 0, largest = 0;

  Errors(std::vector<T> const& got, std::vector<double> const& exact) {
    double const unit = std::is_same_v<T, bfloat16> ? 0x1p-8 : 0x1p-11;
    double errors = 0, squares = 0, most = 0;
    if (got.size() != exact.size()) norm = largest = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < exact.size(); ++i) {
      if (std::isnan(exact[i]) && std::isnan(static_cast<float>(got[i]))) continue;  // untouched
      double const error = std::abs(static_cast<double>(got[i]) - exact[i]);
      errors += error * error;
      squares += exact[i] * exact[i];
      most = std::max(most, std::abs(exact[i]));
      if (!(error <= largest)) largest = std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
    }
    if (errors == 0) return;
    norm = std::sqrt(errors / squares) / unit;
    largest /= most * unit;
  }
};

/// The bounds of a 16-bit type. Each term of an output or of a value's gradient is rounded, and so is the sum. The
/// other gradients contain the difference of two products, which is inexact because the output is rounded. The error is
/// small if a query has few keys.
template <class T>
void check_close(Results<T> const& got, Results<double> const& exact) {
  Errors<T> const out(got.out, exact.out), dquery(got.dquery, exact.dquery), dkey(got.dkey, exact.dkey),
      dvalue(got.dvalue, exact.dvalue), dbias(got.dbias, exact.dbias);
  CHECK(out.norm <= 2);
  CHECK(out.largest <= 4);
  CHECK(dvalue.norm <= 2);
  CHECK(dvalue.largest <= 4);
  CHECK(dquery.norm <= 12);
  CHECK(dquery.largest <= 15);
  CHECK(dkey.norm <= 12);
  CHECK(dkey.largest <= 15);
  CHECK(dbias.norm <= 12);
}

}  // namespace attention_on_cuda
