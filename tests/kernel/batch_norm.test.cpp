// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/batch_norm.hpp>

#include <doctest/doctest.h>

#include <limits>

#include <lockstep/core/thread_pool.hpp>

#include "kernel/values.hpp"
#include "kernel/view.hpp"

using namespace lockstep;
using lockstep_test::values;
using lockstep_test::view;
using Kernel = kernel::BatchNorm<HostSpace>;
using kernel::Activation;

namespace {
constexpr double epsilon = 1e-3;

template <class T>
struct Case {
  Index rows, width;
  std::vector<T> x = values<T>(rows * width, 1), dy = values<T>(rows * width, 2), weight = values<T>(width, 3),
                 bias = values<T>(width, 4), running = values<T>(width, 5);

  struct Results {
    std::vector<T> mean, reciprocal, scale, y, dx, dweight, dbias, running_mean, running_variance;
  };
  Results run(Activation activation, Write how, int threads = 2) const {
    ThreadPool pool(threads);
    memory::Stream<HostSpace> const stream(pool);
    auto const nothing = std::numeric_limits<T>::quiet_NaN(), before = how == Write::add ? T(1) : nothing;
    auto const per_channel = [&](T start) { return std::vector<T>(weight.size(), start); };
    Results r{per_channel(nothing),
              per_channel(nothing),
              per_channel(nothing),
              std::vector<T>(x.size(), nothing),
              std::vector<T>(x.size(), before),
              per_channel(before),
              per_channel(before),
              running,
              running};
    std::vector<T> partial(static_cast<std::size_t>(Kernel::partial_elements(rows, width)), nothing);
    Kernel::Statistics<T> const s{view(r.mean, width), view(r.reciprocal, width), view(r.scale, width)};
    auto const in = view(x, rows, width);
    Kernel::measure<T>(stream, in, view(weight, width), epsilon, 0.25,
                       {view(r.running_mean, width), view(r.running_variance, width)}, s, partial.data());
    Kernel::forward<T>(stream, in, s, view(bias, width), activation, view(r.y, rows, width));
    Kernel::backward<T>(stream, view(dy, rows, width), in, s, view(bias, width), activation, view(r.dx, rows, width),
                        how, view(r.dweight, width), how, view(r.dbias, width), how, partial.data());
    return r;
  }
};

/// Of one channel, in double, straight from the definitions.
struct Channel {
  double mean = 0, variance = 0, dweight = 0, dbias = 0;
  std::vector<double> y, dx;
  template <class T>
  Channel(Case<T> const& k, Index c, Activation activation) {
    auto const at = [&](std::vector<T> const& v, Index r) {
      return static_cast<double>(v[static_cast<std::size_t>(r * k.width + c)]);
    };
    auto const n = static_cast<double>(k.rows);
    for (Index r = 0; r < k.rows; ++r) mean += at(k.x, r) / n;
    for (Index r = 0; r < k.rows; ++r) variance += (at(k.x, r) - mean) * (at(k.x, r) - mean) / n;
    double const reciprocal = 1 / std::sqrt(variance + epsilon);
    std::vector<double> g, z;
    for (Index r = 0; r < k.rows; ++r) {
      z.push_back((at(k.x, r) - mean) * reciprocal);
      double const out = z.back() * at(k.weight, 0) + at(k.bias, 0);
      bool const passes = activation == Activation::none || out > 0;
      y.push_back(passes ? out : 0);
      g.push_back(passes ? at(k.dy, r) : 0);
      dbias += g.back();
      dweight += g.back() * z.back();
    }
    for (std::size_t r = 0; r < g.size(); ++r)
      dx.push_back(at(k.weight, 0) * reciprocal * (g[r] - dbias / n - z[r] * dweight / n));
  }
};
}  // namespace

TEST_CASE_TEMPLATE("statistics, values and gradients follow their definitions", T, float, double) {
  // A channel's chunk sums at most 16384 terms of size one to four in T, the rest is double: relative to the largest
  // intermediate, of size 1/sqrt(epsilon) = 32 at most after the reciprocal, (n + 16) epsilon holds for the mean and
  // what follows from it. n is the rows of one chunk.
  for (Index width : {1, 15, 16, 17, 33}) {
    Index const chunk = 16384 / width;
    for (Index rows : {Index{1}, Index{2}, Index{31}, chunk, chunk + 1, chunk + chunk / 3}) {
      for (auto activation : {Activation::none, Activation::relu}) {
        for (auto how : {Write::overwrite, Write::add}) {
          Case<T> const k{rows, width};
          auto const got = k.run(activation, how);
          double const unit = static_cast<double>(std::numeric_limits<T>::epsilon()),
                       bound = (static_cast<double>(std::min(rows, chunk)) + 16) * unit * 32,
                       before = how == Write::add ? 1 : 0;
          double worst = 0;
          for (Index c = 0; c < width; ++c) {
            auto const i = static_cast<std::size_t>(c);
            Channel const expected(k, c, activation);
            auto const off = [&](T value, double from, double size) {
              double const error = std::abs(static_cast<double>(value) - from) / size;
              worst = std::isnan(error) ? error : std::max(worst, error);
            };
            off(got.mean[i], expected.mean, 1);
            off(got.reciprocal[i], 1 / std::sqrt(expected.variance + epsilon), 32);
            off(got.dbias[i], expected.dbias + before, static_cast<double>(rows));
            off(got.dweight[i], expected.dweight + before, 4 * static_cast<double>(rows));
            for (Index r = 0; r < rows; r += std::max<Index>(1, rows / 50)) {
              auto const j = static_cast<std::size_t>(r);
              off(got.y[static_cast<std::size_t>(r * width + c)], expected.y[j], 1);
              off(got.dx[static_cast<std::size_t>(r * width + c)], expected.dx[j] + before, 32);
            }
            double const n = static_cast<double>(rows), start = static_cast<double>(k.running[i]);
            off(got.running_mean[i], rows < 2 ? start : 0.75 * start + 0.25 * expected.mean, 1);
            off(got.running_variance[i], rows < 2 ? start : 0.75 * start + 0.25 * expected.variance * n / (n - 1), 1);
          }
          CAPTURE(width);
          CAPTURE(rows);
          CHECK(worst <= bound);
        }
      }
    }
  }
}

TEST_CASE("no rows: sums of zero, statistics of zero") {
  Case<float> const k{0, 5};
  auto const got = k.run(Activation::relu, Write::overwrite);
  for (std::size_t c = 0; c < 5; ++c) {
    CHECK(got.mean[c] == 0);
    CHECK(got.dweight[c] == 0);
    CHECK(got.dbias[c] == 0);
    CHECK(got.running_mean[c] == k.running[c]);
  }
}

TEST_CASE_TEMPLATE("rows that lie on several replicas count as one", T, float, double) {
  for (auto activation : {Activation::none, Activation::relu})
    for (Index width : {1, 17}) {
      Case<T> const k{700, width};
      auto const whole = k.run(activation, Write::add);
      std::vector<Index> const ends{0, 300, 300, 301, 700};  // the second has none
      auto const replicas = std::ssize(ends) - 1;
      ThreadPool pool(2);
      memory::Stream<HostSpace> const stream(pool);
      auto const per_channel = [&] { return std::vector<T>(k.weight.size()); };
      std::vector<double> moments(static_cast<std::size_t>(replicas * Kernel::moment_elements(width)));
      std::vector<T> partial(static_cast<std::size_t>(Kernel::partial_elements(k.rows, width))),
          means(2 * k.bias.size()), sums(static_cast<std::size_t>(replicas) * means.size()),
          mean = per_channel(), reciprocal = per_channel(), scale = per_channel(), dweight(k.weight.size(), T{1}),
          dbias(dweight), dx(k.x.size(), T{1}), running_mean(k.running), running_variance(k.running);
      Kernel::Statistics<T> const s{view(mean, width), view(reciprocal, width), view(scale, width)};
      auto const part = [&](auto& all, Index r) {
        auto const first = ends[static_cast<std::size_t>(r)], rows = ends[static_cast<std::size_t>(r) + 1] - first;
        return TensorView<std::remove_reference_t<decltype(*all.data())>, 2, HostSpace>{all.data() + first * width,
                                                                                        {rows, width}};
      };
      for (Index r = 0; r < replicas; ++r)
        Kernel::moments<T>(stream, part(k.x, r), partial.data(), moments.data() + r * Kernel::moment_elements(width));
      Kernel::measure_all<T>(stream, replicas, moments.data(), view(k.weight, width), epsilon, 0.25,
                             {view(running_mean, width), view(running_variance, width)}, s);
      for (Index r = 0; r < replicas; ++r)
        Kernel::sums<T>(stream, part(k.dy, r), part(k.x, r), s, view(k.bias, width), activation, view(dweight, width),
                        Write::add, view(dbias, width), Write::add, partial.data(), sums.data() + r * 2 * width);
      Kernel::means<T>(stream, replicas, width, sums.data(), moments.data(), means.data());
      for (Index r = 0; r < replicas; ++r)
        Kernel::input_gradient<T>(stream, part(k.dy, r), part(k.x, r), s, view(k.bias, width), activation, means.data(),
                                  part(dx, r), Write::add);
      // As many roundings as in the first case, of sums in other pieces.
      double const bound = (700 + 16) * static_cast<double>(std::numeric_limits<T>::epsilon()) * 32;
      auto const near = [&](std::vector<T> const& a, std::vector<T> const& b, double size) {
        for (std::size_t i = 0; i < a.size(); ++i)
          if (!(std::abs(static_cast<double>(a[i] - b[i])) <= bound * size)) return false;
        return a.size() == b.size();
      };
      CHECK(near(mean, whole.mean, 1));
      CHECK(near(scale, whole.scale, 1));
      CHECK(near(running_variance, whole.running_variance, 1));
      CHECK(near(dweight, whole.dweight, 700));
      CHECK(near(dbias, whole.dbias, 700));
      CHECK(near(dx, whole.dx, 1));
    }
}

TEST_CASE_TEMPLATE("bits do not depend on threads", T, float, double) {
  Case<T> const k{3000, 33};
  auto const one = k.run(Activation::relu, Write::overwrite, 1), four = k.run(Activation::relu, Write::overwrite, 4);
  CHECK(one.y == four.y);
  CHECK(one.dx == four.dx);
  CHECK(one.dweight == four.dweight);
  CHECK(one.running_variance == four.running_variance);
}

TEST_CASE("evaluation recalls the running averages") {
  ThreadPool pool(1);
  std::vector<double> mean{2}, variance{3}, weight{5}, m(1), r(1), s(1);
  Kernel::recall<double>(memory::Stream<HostSpace>(pool), {view(mean, 1), view(variance, 1)},
                         view(std::as_const(weight), 1), 1, {view(m, 1), view(r, 1), view(s, 1)});
  CHECK(m[0] == 2);
  CHECK(r[0] == 0.5);
  CHECK(s[0] == 2.5);
}
