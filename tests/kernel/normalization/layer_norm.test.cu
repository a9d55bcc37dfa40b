// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/normalization/layer_norm.cuh>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/core/float16.hpp>

#include "kernel/device_layout.hpp"
#include "layer_norm_case.hpp"

using namespace lockstep;
using lockstep_test::LayerNormCase;
using lockstep_test::OnDevice;
using lockstep_test::TwinLayout;

namespace {

template <class T>
using Results = typename LayerNormCase<T>::Results;

template <class T>
Results<T> on_device(memory::CudaStream const& stream, LayerNormCase<T> const& c, kernel::RowDropout<CudaSpace> dropout,
                     Write write) {
  using Kernel = kernel::LayerNorm<CudaSpace>;
  auto r = c.before(write);
  OnDevice<T> const x(c.x), added(c.added), weight(c.weight), bias(c.bias), dy(c.dy), sum(r.sum), moments(r.moments),
      y(r.y), dx(r.dx), dadded(r.dadded), dweight(r.dweight), dbias(r.dbias), dadded_sums(r.dadded_sums),
      partial(std::vector<T>(static_cast<std::size_t>(Kernel::partial_elements(c.rows, c.width))));
  auto const shaped = [&](auto& v) { return v.view(c.rows, c.width); };
  kernel::Residual<T, CudaSpace> const residual{shaped(added), dropout};
  Kernel::forward<T>(stream.view(), shaped(x), residual, weight.view(c.width), bias.view(c.width),
                     static_cast<T>(c.epsilon), shaped(sum), moments.view(c.rows, 2), shaped(y));
  Kernel::backward<T>(stream.view(), shaped(dy), shaped(sum), moments.view(c.rows, 2), residual, weight.view(c.width),
                      shaped(dx), write, shaped(dadded), write, dweight.view(c.width), write, dbias.view(c.width),
                      write, partial.view(0).data, c.sums_of(write, dadded_sums.view(c.width)), Write::add);
  r.sum = sum.values(), r.moments = moments.values(), r.y = y.values(), r.dx = dx.values();
  r.dadded = dadded.values(), r.dweight = dweight.values(), r.dbias = dbias.values();
  r.dadded_sums = dadded_sums.values();
  return r;
}

/// `exact` is computed from equal numbers in double. Roundings of at most u each, to first order:
/// A centered element has an error e <= 2 (n + 4) u most, where `most` bounds |s|: its own sum's, the mean's and the
/// subtraction's. So has the deviation, and its square root's and quotient's roundings add (n + 8) u: relatively, the
/// reciprocal r has an error of e r + (n + 8) u, and a normalized element of `off` = (1 + |x|) (e r + (n + 8) u).
/// y multiplies and adds: |w| off + 2 u (|w x| + |b|).
/// ds = r (g - mean g - x mean gx), |g| <= 1: its parts have errors of u, (n + 3) u and off + |x| (off + (n + 4) u),
/// and it is scaled by an inexact r: r (off (1 + |x|) + (2 n + 12) u (1 + |x|)) (1 + |x|), dropout at most doubling it.
/// The parameters' gradients add up over the rows: |dy| off, and (rows + 2) u of the terms' magnitudes.
/// The sums of dadded's rows start at 1, and add up these errors, and (rows + 3) u of the terms' magnitudes.
/// A 16-bit result is rounded once more, by `stored` of its magnitude.
template <class T>
bool agrees(LayerNormCase<T> const& c, Results<T> const& got, Results<double> const& exact, double stored = 0) {
  double const u = static_cast<double>(std::numeric_limits<T>::epsilon()) / (sizeof(T) == 8 ? 1 : 2);
  auto const n = static_cast<double>(c.width), rows = static_cast<double>(c.rows);
  double const most = 3;
  auto const near = [](T a, double b, double bound) { return std::abs(static_cast<double>(a) - b) <= bound; };
  bool good = true;
  std::vector<double> column(c.weight.size(), (rows + 3) * u), weight_column(column), added_column(column);
  for (std::size_t i = 0; i < c.x.size(); ++i) {
    auto const row = i / c.weight.size(), k = i % c.weight.size();
    double const r = exact.moments[2 * row + 1];
    double const normalized = (exact.sum[i] - exact.moments[2 * row]) * r, x = std::abs(normalized);
    auto const got_normalized = (static_cast<double>(got.sum[i]) - static_cast<double>(got.moments[2 * row])) *
                                static_cast<double>(got.moments[2 * row + 1]);
    double const relative = 2 * (n + 4) * u * most * r + (n + 8) * u, off = (1 + x) * relative;
    auto const w = std::abs(static_cast<double>(c.weight[k]));
    good = good && std::abs(got_normalized - normalized) <= off;
    auto const rounding = [=](double value) { return stored > 0 ? 1.1 * stored * std::abs(value) + 0x1p-25 : 0; };
    good = good && near(got.y[i], exact.y[i], w * off + 2 * u * (w * x + 1) + rounding(exact.y[i]));
    double const ds = 2 * r * (1 + x) * (1 + x) * (off + (2 * n + 12) * u) + 4 * u;
    good = good && near(got.dx[i], exact.dx[i], ds + rounding(exact.dx[i]));
    good = good && near(got.dadded[i], exact.dadded[i], 2 * ds + rounding(exact.dadded[i]));
    auto const added = std::abs(exact.dadded[i]);
    added_column[k] += 2 * ds + rounding(added) + (rows + 3) * u * (added + 2 * ds + rounding(added));
    column[k] += (rows + 3) * u;
    weight_column[k] += off + (rows + 3) * u * x;
  }
  for (std::size_t k = 0; k < column.size(); ++k) {
    good = good && near(got.dweight[k], exact.dweight[k], weight_column[k]);
    good = good && near(got.dbias[k], exact.dbias[k], column[k]);
    good = good && near(got.dadded_sums[k], exact.dadded_sums[k], added_column[k]);
  }
  return good;
}

/// Results of 16-bit rows, from the case's numbers rounded, as float.
template <class Stored>
Results<float> of_16_bits(memory::CudaStream const& stream, LayerNormCase<float> const& c) {
  using Kernel = kernel::LayerNorm<CudaSpace>;
  auto const narrow = [](std::vector<float> const& v) { return std::vector<Stored>(v.begin(), v.end()); };
  auto const wide = [](std::vector<Stored> const& v) { return std::vector<float>(v.begin(), v.end()); };
  auto r = c.before(Write::overwrite);
  OnDevice<Stored> const x(narrow(c.x)), added(narrow(c.added)), dy(narrow(c.dy)), sum(narrow(r.sum)), y(narrow(r.y)),
      dx(narrow(r.dx)), dadded(narrow(r.dadded));
  OnDevice<float> const weight(c.weight), bias(c.bias), moments(r.moments), dweight(r.dweight), dbias(r.dbias),
      dadded_sums(r.dadded_sums),
      partial(std::vector<float>(static_cast<std::size_t>(Kernel::partial_elements(c.rows, c.width))));
  auto const shaped = [&](auto& v) { return v.view(c.rows, c.width); };
  kernel::Residual<Stored, CudaSpace> const residual{shaped(added), {}};
  Kernel::forward<Stored>(stream.view(), shaped(x), residual, weight.view(c.width), bias.view(c.width),
                          static_cast<float>(c.epsilon), shaped(sum), moments.view(c.rows, 2), shaped(y));
  Kernel::backward<Stored>(stream.view(), shaped(dy), shaped(sum), moments.view(c.rows, 2), residual,
                           weight.view(c.width), shaped(dx), Write::overwrite, shaped(dadded), Write::overwrite,
                           dweight.view(c.width), Write::overwrite, dbias.view(c.width), Write::overwrite,
                           partial.view(0).data, dadded_sums.view(c.width), Write::add);
  return {wide(sum.values()),    moments.values(), wide(y.values()), wide(dx.values()),
          wide(dadded.values()), dweight.values(), dbias.values(),   dadded_sums.values()};
}

}  // namespace

TEST_CASE_TEMPLATE("layer norm on CUDA equals the host's within rounding", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::LayerNorm<CudaSpace>")) return;
  memory::CudaStream const stream;
  for (auto kind : {TwinLayout::Kind::padded, TwinLayout::Kind::ragged})
    for (auto const& lengths : {std::vector<std::int32_t>{}, {1}, {3, 0, 5, 1}, {33, 32}})
      for (Index width : {1, 31, 32, 33, 65})
        for (double probability : {0.0, 0.4})
          for (auto write : {Write::overwrite, Write::add}) {
            TwinLayout const twin(kind, lengths);
            auto const mask = kernel::DropoutMask::of(9, probability);
            CAPTURE(twin.slots());
            CAPTURE(width);
            CAPTURE(probability);
            LayerNormCase<T> const c{twin.slots(), width};
            auto const got = on_device(stream, c, {mask, twin.device()}, write);
            CHECK(agrees(c, got, LayerNormCase<double>{twin.slots(), width}.on_host(write, 1, {mask, twin.host()})));
          }
}

TEST_CASE("layer norm on CUDA: every division of rows among threads, with equal bits on repetition") {
  if (!lockstep_test::has_gpu("kernel::LayerNorm<CudaSpace>")) return;
  memory::CudaStream const stream;
  // Cooperative groups of a part of a warp, a warp, a block; rows too long for registers only backward, and in both
  // directions.
  std::pair<Index, Index> const shapes[] = {{1, 64},   {3, 100},  {2000, 64}, {2000, 100}, {1030, 128}, {133, 132},
                                            {70, 512}, {33, 768}, {17, 1028}, {9, 4096},   {3, 4100},   {3, 8196}};
  for (auto const& shape : shapes) {
    auto const rows = shape.first, width = shape.second;
    CAPTURE(rows);
    CAPTURE(width);
    LayerNormCase<float> const c{rows, width};
    for (auto write : {Write::overwrite, Write::add}) {
      auto const got = on_device(stream, c, {}, write);
      CHECK(agrees(c, got, LayerNormCase<double>{rows, width}.on_host(write)));
      if (write == Write::add && rows < 2000) CHECK(on_device(stream, c, {}, write) == got);
    }
  }
}

TEST_CASE_TEMPLATE("layer norm on CUDA in 16 bits", Stored, bfloat16, float16) {
  if (!lockstep_test::has_gpu("kernel::LayerNorm<CudaSpace>")) return;
  memory::CudaStream const stream;
  double const unit = std::is_same_v<Stored, bfloat16> ? 0x1p-8 : 0x1p-11;
  std::pair<Index, Index> const shapes[] = {{1, 64}, {3, 100}, {300, 128}, {40, 768}, {20, 1024}, {9, 4096}, {3, 8200}};
  for (auto const& shape : shapes) {
    auto const rows = shape.first, width = shape.second;
    CAPTURE(rows);
    CAPTURE(width);
    LayerNormCase<float> c{rows, width};
    for (auto* rounded : {&c.x, &c.added, &c.dy})
      for (auto& value : *rounded) value = static_cast<float>(static_cast<Stored>(value));
    auto const got = of_16_bits<Stored>(stream, c);
    LayerNormCase<double> exact{rows, width};
    exact.x.assign(got.sum.begin(), got.sum.end());
    exact.added.assign(c.added.size(), 0);
    exact.dy.assign(c.dy.begin(), c.dy.end());
    CHECK(agrees(c, got, exact.on_host(Write::overwrite), unit));
    bool good = true;
    for (std::size_t i = 0; i < c.x.size(); ++i) {
      auto const sum = c.x[i] + c.added[i];
      good = good && std::abs(got.sum[i] - sum) <= static_cast<float>(unit) * std::abs(sum);
    }
    CHECK(good);
    CHECK(of_16_bits<Stored>(stream, c) == got);
  }
}

TEST_CASE("layer norm on CUDA: a row's bits depend neither on its address nor on the number of rows") {
  if (!lockstep_test::has_gpu("kernel::LayerNorm<CudaSpace>")) return;
  using Kernel = kernel::LayerNorm<CudaSpace>;
  memory::CudaStream const stream;
  for (Index width : {64, 128, 768, 2048}) {
    CAPTURE(width);
    LayerNormCase<float> const c{70, width};
    auto const run = [&](Index first, Index rows, Index shift) {
      auto const begin = c.x.begin() + first * width;
      std::vector<float> shifted(static_cast<std::size_t>(shift));
      shifted.insert(shifted.end(), begin, begin + rows * width);
      OnDevice<float> const x(shifted), y(shifted), weight(c.weight), bias(c.bias);
      auto const shaped = [&](auto& v) {
        return TensorView<float, 2, CudaSpace>{v.view(0).data + shift, {rows, width}};
      };
      Kernel::forward<float>(stream.view(), shaped(x), {}, weight.view(width), bias.view(width), 1e-5f, {}, {},
                             shaped(y));
      auto const values = y.values();
      return std::vector<float>(values.begin() + shift, values.end());
    };
    auto const all = run(0, 70, 0);
    CHECK(run(0, 70, 1) == all);
    CHECK(run(69, 1, 0) == std::vector<float>(all.end() - width, all.end()));
  }
}

TEST_CASE("layer norm on CUDA without a residual, and without values that only backward needs") {
  if (!lockstep_test::has_gpu("kernel::LayerNorm<CudaSpace>")) return;
  memory::CudaStream const stream;
  LayerNormCase<float> const c{5, 40};
  OnDevice<float> const x(c.x), weight(c.weight), bias(c.bias), none(std::vector<float>(c.x.size())), y(c.x),
      alone(c.x);
  kernel::Residual<float, CudaSpace> const nothing{none.view(5, 40), {}};
  auto const run = [&](kernel::Residual<float, CudaSpace> residual, TensorView<float, 2, CudaSpace> out) {
    kernel::LayerNorm<CudaSpace>::forward<float>(stream.view(), x.view(5, 40), residual, weight.view(40), bias.view(40),
                                                 1e-5f, {}, {}, out);
  };
  run(nothing, y.view(5, 40));
  run({}, alone.view(5, 40));
  CHECK(y.values() == alone.values());
  CHECK(y.values() != c.x);
}
