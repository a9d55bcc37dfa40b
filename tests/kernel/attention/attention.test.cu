// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/attention/attention.cuh>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <type_traits>

#include "kernel/device_layout.hpp"
#include "kernel/values.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;
using lockstep_test::TwinLayout;
using lockstep_test::values;
using lockstep_test::view;

namespace attention_on_cuda {
namespace {

struct Setting {
  TwinLayout::Kind kind;
  std::vector<std::int32_t> queries, keys;
  Index heads, head_width;
  bool causal = false, biased = false;
  double dropout = 0;
  Index heads_per_key_head = 1;
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
  /// NaN in padding, which must not be read.
  [[nodiscard]] static std::vector<T> input(TwinLayout const& twin, Index across, std::uint64_t seed) {
    auto x = rounded(twin.slots() * across, seed, 2);
    for (Index i = 0; i < twin.slots() * across; ++i)
      if (!twin.host().is_token(i / across)) x[static_cast<std::size_t>(i)] = nan();
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
    using Kernel = kernel::Attention<CudaSpace>;
    auto const r = start(write);
    auto const q = queries.slots(), k = keys.slots();
    OnDevice<T> const x(query), y(key), z(value), d(dout), b(bias), out(r.out), dquery(r.dquery), dkey(r.dkey),
        dvalue(r.dvalue), dbias(r.dbias);
    typename Kernel::template Inputs<T> const in{
        .query = x.view(q, width),
        .key = y.view(k, key_width),
        .value = z.view(k, key_width),
        .queries = queries.device(),
        .keys = keys.device(),
        .heads = setting.heads,
        .scale = 0.3,
        .causal = setting.causal,
        .query_heads_per_key_head = setting.heads_per_key_head,
        .bias = setting.biased ? b.view(setting.heads, distances) : TensorView<T, 2, CudaSpace>{},
        .mask = kernel::DropoutMask::of(5, setting.dropout)};
    OnDevice<Sum> const log_sums(std::vector<Sum>(static_cast<std::size_t>(rows * setting.heads * in.queries.length))),
        memory(std::vector<Sum>(static_cast<std::size_t>(Kernel::template scratch<T>(stream.view(), in)), Sum{7}));
    auto const sums = log_sums.view(rows * setting.heads, in.queries.length);
    auto const scratch = memory.view(Kernel::template scratch<T>(stream.view(), in));
    Kernel::template forward<T>(stream.view(), in, out.view(q, width), sums, scratch);
    Kernel::template backward<T>(stream.view(), in, out.view(q, width), sums, d.view(q, width),
                                 {{dquery.view(0).data, write},
                                  {dkey.view(0).data, write},
                                  {dvalue.view(0).data, write},
                                  {setting.biased ? dbias.view(0).data : nullptr, write}},
                                 scratch);
    return {out.values(), dquery.values(), dkey.values(), dvalue.values(), dbias.values()};
  }
};

/// The largest error, in units of epsilon.
template <class T>
double worst(std::vector<T> const& got, std::vector<double> const& exact) {
  double most = got.size() == exact.size() ? 0 : std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < exact.size(); ++i) {
    if (std::isnan(exact[i]) && std::isnan(got[i])) continue;  // untouched
    double const error = std::abs(static_cast<double>(got[i]) - exact[i]);
    if (!(error <= most)) most = std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
  }
  return most / static_cast<double>(std::numeric_limits<T>::epsilon());
}

std::vector<Setting> settings() {
  using enum TwinLayout::Kind;
  std::vector<std::int32_t> const lengths{35, 0, 1, 32, 7};
  return {{padded, {}, {}, 2, 8},
          {ragged, {0}, {0}, 1, 1},
          {padded, {1}, {1}, 1, 3},
          {padded, lengths, lengths, 2, 8, false, false, 0.3},
          {ragged, lengths, lengths, 2, 32, true, true, 0.2},
          {padded, lengths, lengths, 1, 5, true, true},
          {ragged, {33, 2, 0}, {1, 70, 4}, 2, 7, false, true, 0.1},
          {padded, {3, 40}, {40, 0}, 1, 8, true},
          {padded, lengths, lengths, 4, 8, true, true, 0.2, 2},
          {ragged, {33, 2, 0}, {1, 70, 4}, 3, 5, false, false, 0.1, 3}};
}

/// In epsilons, for each head's part of a gradient if heads share keys, for head width d <= 64, at most 70 keys,
/// |query|, |key|, |value|, |dout| <= 2, |bias| <= 1, scale 0.3, and errors of random sign. A score is a sum of d
/// products up to 4, with an error of up to 40 sqrt(d + 2) with all its terms' roundings; a probability has that
/// relative error, and some 20 roundings of the exponential and the sums. An output averages values up to 2.9,
/// including dropout. A gradient sums, with weights that add up to 1, products that are sqrt(d) times as large.
double output_bound(Setting const& s) { return 40 * std::sqrt(static_cast<double>(s.head_width) + 2) + 30; }
double gradient_bound(Setting const& s) {
  return static_cast<double>(s.heads_per_key_head) * output_bound(s) *
         (2 + std::sqrt(static_cast<double>(s.head_width)));
}

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

/// Head widths for each number of channels of the kernels; more than one tile of queries, of keys, or of both.
template <class T>
std::vector<Setting> tensor_core_settings() {
  using enum TwinLayout::Kind;
  if constexpr (std::is_same_v<T, float16>) {
    auto all = settings();
    all.erase(all.begin() + 5, all.begin() + 7);  // the cases in float use this code
    all.push_back({padded, {129}, {129}, 1, 64, true, false, 0.1});
    all.push_back({padded, {260, 7}, {70, 9}, 1, 64, false, true, 0.1});  // blocks of 128 queries
    all.push_back({ragged, {65, 3}, {40, 70}, 2, 128, false, false, 0.1, 2});
    return all;
  } else {
    return {{padded, {130, 64, 1}, {130, 64, 1}, 2, 32, false, false, 0.1},
            {ragged, {65, 129}, {65, 129}, 1, 32, true},
            {padded, {70, 128}, {130, 3}, 2, 64, false, true, 0.2},
            {padded, {33, 66}, {33, 66}, 1, 80, true, true, 0.1}};
  }
}

}  // namespace

TEST_CASE_TEMPLATE("attention on tensor cores equals the host's within rounding", T, bfloat16, float16) {
  if (!lockstep_test::has_gpu("kernel::Attention<CudaSpace>")) return;
  memory::CudaStream const stream;
  auto write = Write::overwrite;
  for (auto const& setting : tensor_core_settings<T>()) {
    Case<T> const c{setting};
    auto const got = c.on_device(stream, write);
    auto const exact = Case<double, T>{setting}.on_host(write);
    CAPTURE(setting.heads);
    CAPTURE(setting.head_width);
    CAPTURE(setting.causal);
    CAPTURE(setting.biased);
    CAPTURE(setting.dropout);
    CAPTURE(write == Write::add);
    // Each term of an output or of a value's gradient is rounded, and so is the sum. The other gradients contain the
    // difference of two products, which is inexact because the output is rounded. The error is small if a query has few
    // keys.
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
    if (write == Write::add) CHECK(c.on_device(stream, write).dkey == got.dkey);
    write = write == Write::overwrite ? Write::add : Write::overwrite;
  }
}

TEST_CASE_TEMPLATE("attention on CUDA equals the host's within rounding", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::Attention<CudaSpace>")) return;
  memory::CudaStream const stream;
  auto write = Write::overwrite;
  for (auto const& setting : settings()) {
    Case<T> const c{setting};
    auto const got = c.on_device(stream, write);
    auto const exact = Case<double>{setting}.on_host(write);
    CAPTURE(setting.heads);
    CAPTURE(setting.head_width);
    CHECK(worst(got.out, exact.out) <= output_bound(setting));
    CHECK(worst(got.dquery, exact.dquery) <= gradient_bound(setting));
    CHECK(worst(got.dkey, exact.dkey) <= gradient_bound(setting));
    CHECK(worst(got.dvalue, exact.dvalue) <= gradient_bound(setting));
    CHECK(worst(got.dbias, exact.dbias) <= gradient_bound(setting));
    if (write == Write::add) CHECK(c.on_device(stream, write).dkey == got.dkey);
    write = write == Write::overwrite ? Write::add : Write::overwrite;
  }
}

#ifndef __CUDACC__  // the emulated device may be of any generation
TEST_CASE_TEMPLATE("attention on a GPU without tensor cores", T, float, bfloat16) {
  memory::CudaStream const stream;
  Setting const setting{TwinLayout::Kind::ragged, {33, 2, 0}, {1, 70, 4}, 2, 40, false, true, 0.1};
  Case<T> const c{setting};
  cuda_emulation::compute_capability = 7;
  auto const old = c.on_device(stream, Write::overwrite);
  cuda_emulation::compute_capability = 9;
  auto const recent = c.on_device(stream, Write::overwrite);
  CHECK(old.out != recent.out);  // other kernels
  auto const exact = Case<double, T>{setting}.on_host(Write::overwrite);
  double const unit = std::is_same_v<T, float> ? 0x1p-9 : 1;  // unit of a 16-bit type's rounding
  auto const error = [&](auto const& got, auto const& right) { return Errors<T>(got, right).norm / unit; };
  CHECK(error(old.out, exact.out) <= 2);
  CHECK(error(old.dquery, exact.dquery) <= 12);
  CHECK(error(old.dkey, exact.dkey) <= 12);
  CHECK(error(old.dvalue, exact.dvalue) <= 2);
  CHECK(error(old.dbias, exact.dbias) <= 12);
}
#endif

TEST_CASE_TEMPLATE("attention on CUDA: a bias of minus infinity may exclude whole tiles of keys", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::Attention<CudaSpace>")) return;
  memory::CudaStream const stream;
  for (bool const causal : {false, true}) {
    Setting const setting{TwinLayout::Kind::padded, {70}, {70}, 1, 8, causal, true};
    Case<T> c{setting};
    Case<double> exact{setting};
    auto const nowhere = -std::numeric_limits<double>::infinity();
    for (Index i = 0; i < c.distances; ++i)
      if (i - 69 < -8) {  // keys more than 8 places before the query
        c.bias[static_cast<std::size_t>(i)] = static_cast<T>(nowhere);
        exact.bias[static_cast<std::size_t>(i)] = nowhere;
      }
    auto const got = c.on_device(stream, Write::overwrite);
    auto const right = exact.on_host(Write::overwrite);
    CHECK(worst(got.out, right.out) <= output_bound(setting));
    CHECK(worst(got.dquery, right.dquery) <= gradient_bound(setting));
    CHECK(worst(got.dkey, right.dkey) <= gradient_bound(setting));
    CHECK(worst(got.dvalue, right.dvalue) <= gradient_bound(setting));
  }
}

TEST_CASE("attention on CUDA: the stream counts two GEMMs forward and five backward, half of them if causal") {
  if (!lockstep_test::has_gpu("kernel::Attention<CudaSpace>")) return;
  memory::CudaStream const stream;
  auto const queued = [&](auto kind, bool causal) {
    auto const before = stream.view().queued();
    Setting const setting{TwinLayout::Kind::padded, {5, 3}, {5, 3}, 2, 8, causal, false};
    static_cast<void>(Case<decltype(kind)>{setting}.on_device(stream, Write::overwrite));
    return stream.view().queued().since(before);
  };
  constexpr double all = 2 * 7 * (2 * 16) * 25;  // two rows of 16 channels, 25 pairs of positions
  CHECK(queued(bfloat16{}, false).half_operations == all);
  CHECK(queued(bfloat16{}, true).half_operations == all / 2);
  CHECK(queued(double{}, false).operations == 2 * all);
  CHECK(queued(double{}, false).half_operations == 0);
}

TEST_CASE("attention on CUDA: heads of more than 32 channels, and too wide ones") {
  if (!lockstep_test::has_gpu("kernel::Attention<CudaSpace>")) return;
  memory::CudaStream const stream;
  Setting setting{TwinLayout::Kind::padded, {33, 5}, {33, 5}, 1, 64, true, true, 0.1};
  auto const got = Case<float>{setting}.on_device(stream, Write::overwrite);
  auto const exact = Case<double>{setting}.on_host(Write::overwrite);
  CHECK(worst(got.out, exact.out) <= output_bound(setting));
  CHECK(worst(got.dquery, exact.dquery) <= gradient_bound(setting));
  CHECK(worst(got.dkey, exact.dkey) <= gradient_bound(setting));
  CHECK(worst(got.dvalue, exact.dvalue) <= gradient_bound(setting));
  CHECK(worst(got.dbias, exact.dbias) <= gradient_bound(setting));
  setting.head_width = 129;
  CHECK_THROWS_WITH_AS(static_cast<void>(Case<bfloat16>{setting}.on_device(stream, Write::overwrite)),
                       doctest::Contains("a head is 129 channels wide, but CUDA supports at most 128"), ShapeError);
  setting.head_width = 65;
  CHECK_THROWS_WITH_AS(static_cast<void>(Case<float>{setting}.on_device(stream, Write::overwrite)),
                       doctest::Contains("a head is 65 channels wide, but CUDA supports at most 64"), ShapeError);
}

}  // namespace attention_on_cuda
