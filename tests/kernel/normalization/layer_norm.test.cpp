// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/normalization/layer_norm.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "layer_norm_case.hpp"

using lockstep::HostSpace;
using lockstep::Index;
using lockstep::ThreadPool;
using lockstep::Write;
using lockstep::kernel::LayerNorm;
using lockstep::kernel::Residual;
using lockstep::memory::Stream;
using lockstep_test::LayerNormCase;
using lockstep_test::view;

TEST_CASE("float results are within their bound of the definition") {
  for (auto const& shape :
       {std::pair<Index, Index>{0, 8}, {1, 1}, {1, 2}, {3, 31}, {127, 32}, {129, 33}, {5, 128}, {2, 1000}}) {
    Index const rows = std::get<0>(shape);
    Index const width = std::get<1>(shape);
    for (Write write : {Write::overwrite, Write::add}) {
      LayerNormCase<float> const c{.rows = rows, .width = width};
      auto const r = c.on_host(write);
      double const u = 0x1p-24, n = static_cast<double>(width), before = write == Write::add ? 1 : 0;
      std::vector<double> dweight(c.weight.size(), before), dbias(c.weight.size(), before),
          dweight_bound(c.weight.size()), dbias_bound(c.weight.size(), before);
      bool y = true, dx = true;
      for (Index row = 0; row < rows; ++row) {
        auto const at = static_cast<std::size_t>(row * width);
        std::vector<double> s(c.weight.size());
        double mean = 0, magnitude = 0, variance = 0;
        for (std::size_t i = 0; i < s.size(); ++i) {
          s[i] = static_cast<double>(c.x[at + i]) + static_cast<double>(c.added[at + i]);
          mean += s[i] / n;
          magnitude += std::abs(s[i]) / n;
        }
        for (double e : s) variance += (e - mean) * (e - mean) / n;
        double const reciprocal = 1 / std::sqrt(variance + c.epsilon);
        // A centered element has the rounding of its sum, the mean's n + 1 and the subtraction's: (n + 4) u * most.
        double most = magnitude;
        for (double e : s) most = std::max(most, std::abs(e));
        double const centred = (n + 4) * u * most * 2;
        // Relative error of the reciprocal deviation: half the variance's, n + 3 roundings and its elements'; 3 of its
        // own.
        double const relative = (n + 6) * u + centred * reciprocal;
        double g_mean = 0, p_mean = 0, g_magnitude = 0, p_magnitude = 0;
        for (std::size_t i = 0; i < s.size(); ++i) {
          double const normalized = (s[i] - mean) * reciprocal, w = static_cast<double>(c.weight[i]),
                       b = static_cast<double>(c.bias[i]);
          double const off = centred * reciprocal + std::abs(normalized) * (relative + 2 * u);
          y &= std::abs(static_cast<double>(r.y[at + i]) - (w * normalized + b)) <=
               std::abs(w) * off + 3 * u * (std::abs(w * normalized) + std::abs(b));
          double const d = static_cast<double>(c.dy[at + i]), g = d * w;
          g_mean += g / n;
          p_mean += g * normalized / n;
          g_magnitude += std::abs(g) / n;
          p_magnitude += std::abs(g) * (std::abs(normalized) + off / u / (n + 4)) / n;
          dweight[i] += d * normalized;
          dweight_bound[i] +=
              std::abs(d) * off + (static_cast<double>(rows) + 4) * u * (std::abs(d * normalized) + before);
          dbias[i] += d;
          dbias_bound[i] += std::abs(d);
        }
        for (std::size_t i = 0; i < s.size(); ++i) {
          double const normalized = (s[i] - mean) * reciprocal,
                       g = static_cast<double>(c.dy[at + i]) * static_cast<double>(c.weight[i]);
          double const off = centred * reciprocal + std::abs(normalized) * (relative + 2 * u);
          double const exact = before + reciprocal * (g - g_mean - normalized * p_mean);
          double const terms = std::abs(g) + g_magnitude + std::abs(normalized) * p_magnitude;
          double const bound = reciprocal * ((n + 8) * u * terms + relative * terms + off * std::abs(p_mean)) +
                               2 * u * (before + std::abs(exact));
          dx &= std::abs(static_cast<double>(r.dx[at + i]) - exact) <= bound;
        }
      }
      bool parameters = true;
      for (std::size_t i = 0; i < dweight.size(); ++i) {
        parameters &= std::abs(static_cast<double>(r.dweight[i]) - dweight[i]) <= dweight_bound[i];
        parameters &= std::abs(static_cast<double>(r.dbias[i]) - dbias[i]) <=
                      (static_cast<double>(rows) + 2) * u * dbias_bound[i];
      }
      CAPTURE(rows);
      CAPTURE(width);
      CHECK(y);
      CHECK(dx);
      CHECK(r.dadded == r.dx);
      bool sums = true;
      for (std::size_t i = 0; i < dbias.size(); ++i) {
        double sum = 1, terms = 1;
        for (auto at = i; write == Write::overwrite && at < r.dadded.size(); at += dbias.size()) {
          sum += static_cast<double>(r.dadded[at]);
          terms += std::abs(static_cast<double>(r.dadded[at]));
        }
        sums &= std::abs(static_cast<double>(r.dadded_sums[i]) - sum) <= (static_cast<double>(rows) + 2) * u * terms;
      }
      CHECK(sums);
      CHECK(parameters);
    }
  }
}

TEST_CASE_TEMPLATE("bits do not depend on threads or repetition", T, float, double) {
  LayerNormCase<T> const c{.rows = 700, .width = 50};
  auto const one = c.on_host(Write::overwrite);
  auto const same = [](std::vector<T> const& a, std::vector<T> const& b) {
    return std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
  };
  for (int threads : {1, 2, 4}) {
    auto const other = c.on_host(Write::overwrite, threads);
    CHECK(same(one.y, other.y));
    CHECK(same(one.dx, other.dx));
    CHECK(same(one.dweight, other.dweight));
    CHECK(same(one.dbias, other.dbias));
  }
}

TEST_CASE_TEMPLATE("a row has equal bits among others and alone", T, float, double) {
  for (Index const width : {5, 32, 133, 256, 300}) {  // short rows are summed several at once, long ones alone
    Index const rows = 7;
    LayerNormCase<T> const all{.rows = rows, .width = width};
    auto const together = all.on_host(Write::overwrite);
    for (Index row = 0; row < rows; ++row) {
      LayerNormCase<T> one{.rows = 1, .width = width};
      auto const of = [&](std::vector<T> const& v, Index size) {
        return std::vector<T>(v.begin() + row * size, v.begin() + (row + 1) * size);
      };
      one.x = of(all.x, width), one.added = of(all.added, width), one.dy = of(all.dy, width);
      auto const alone = one.on_host(Write::overwrite);
      CAPTURE(width);
      CAPTURE(row);
      CHECK(alone.y == of(together.y, width));
      CHECK(alone.sum == of(together.sum, width));
      CHECK(alone.moments == of(together.moments, 2));
      CHECK(alone.dx == of(together.dx, width));
    }
  }
}

TEST_CASE_TEMPLATE("without a residual the input itself serves backward, bit-identically", T, float, double) {
  LayerNormCase<T> c{.rows = 130, .width = 37};
  std::fill(c.added.begin(), c.added.end(), T(0));
  auto const joined = c.on_host(Write::overwrite);
  CHECK(joined.sum == c.x);
  ThreadPool pool(1);
  Stream<HostSpace> const stream(pool);
  auto r = joined;
  auto const shaped = [&](auto& v) { return view(v, c.rows, c.width); };
  auto const clear = [](std::vector<T>& v) { std::fill(v.begin(), v.end(), std::numeric_limits<T>::quiet_NaN()); };
  for (auto* v : {&r.sum, &r.moments, &r.y, &r.dx, &r.dweight, &r.dbias}) clear(*v);
  LayerNorm<HostSpace>::forward<T>(stream, shaped(c.x), {}, view(c.weight, c.width), view(c.bias, c.width),
                                   static_cast<T>(c.epsilon), shaped(r.sum), view(r.moments, c.rows, 2), shaped(r.y));
  CHECK(std::isnan(r.sum.front()));  // not written
  std::vector<T> partial(static_cast<std::size_t>(LayerNorm<HostSpace>::partial_elements(c.rows, c.width)),
                         std::numeric_limits<T>::quiet_NaN());
  LayerNorm<HostSpace>::backward<T>(stream, shaped(c.dy), shaped(c.x), view(r.moments, c.rows, 2), {},
                                    view(c.weight, c.width), shaped(r.dx), Write::overwrite, {}, Write::overwrite,
                                    view(r.dweight, c.width), Write::overwrite, view(r.dbias, c.width),
                                    Write::overwrite, partial.data());
  CHECK(r.y == joined.y);
  CHECK(r.dx == joined.dx);
  CHECK(r.dweight == joined.dweight);
  CHECK(r.dbias == joined.dbias);
}

TEST_CASE("a mean far from zero does not cancel") {
  // 4096 + {0, 1, ...}: exact in float; the one-pass formula, mean of squares minus squared mean, would lose half the
  // digits.
  Index const width = 16;
  LayerNormCase<float> c{.rows = 1, .width = width};
  for (std::size_t i = 0; i < c.x.size(); ++i) {
    c.x[i] = 4096.0F + static_cast<float>(i);
    c.added[i] = 0;
    c.weight[i] = 1;
    c.bias[i] = 0;
  }
  auto const r = c.on_host(Write::overwrite);
  double const deviation = std::sqrt((16.0 * 16.0 - 1) / 12 + c.epsilon);
  for (std::size_t i = 0; i < c.x.size(); ++i)
    CHECK(static_cast<double>(r.y[i]) ==
          doctest::Approx((static_cast<double>(i) - 7.5) / deviation).epsilon(4 * 0x1p-24));
}

TEST_CASE("shapes that disagree are refused with both sides") {
  ThreadPool pool(1);
  LayerNormCase<float> const c{.rows = 2, .width = 3};
  std::vector<float> y(6);
  auto const call = [&](auto residual, auto weight) -> std::string {
    try {
      LayerNorm<HostSpace>::forward<float>(Stream<HostSpace>(pool), view(c.x, 2, 3), residual, weight, view(c.bias, 3),
                                           1e-5F, {}, {}, view(y, 2, 3));
    } catch (lockstep::ShapeError const& error) {
      return error.what();
    }
    return "";
  };
  CHECK(call(Residual<float, HostSpace>{}, view(c.x, 6)) == "LayerNorm: rows have 3 elements, weight has 6 and bias 3");
  CHECK(call(Residual<float, HostSpace>{.value = view(c.added, 3, 2)}, view(c.weight, 3)) ==
        "LayerNorm: x is [2, 3] and the residual [3, 2]");
  CHECK(call(Residual<float, HostSpace>{}, view(c.weight, 3)).empty());
}
