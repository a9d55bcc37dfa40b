// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/normalization/batch_norm.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <lockstep/core/thread_pool.hpp>

#include "batch_norm_case.hpp"
#include "kernel/view.hpp"

using namespace lockstep;
using lockstep_test::BatchNormCase;
using lockstep_test::view;
using Kernel = kernel::BatchNorm<HostSpace>;
using kernel::Activation;

namespace {
template <class T>
lockstep_test::BatchNormResults<T> run(BatchNormCase<T> const& c, Activation activation, Write how, int threads = 2) {
  ThreadPool pool(threads);
  memory::Stream<HostSpace> const stream(pool);
  auto r = c.before(how);
  auto const nothing = std::numeric_limits<T>::quiet_NaN();
  std::vector<T> partial(static_cast<std::size_t>(Kernel::partial_elements(c.rows, c.width)), nothing),
      recalled_mean(r.mean), recalled_reciprocal(r.mean);
  auto const vector = [&](auto& v) { return view(v, c.width); };
  auto const matrix = [&](auto& v) { return view(v, c.rows, c.width); };
  Kernel::Statistics<T> const s{vector(r.mean), vector(r.reciprocal), vector(r.scale)};
  Kernel::Running<T> const running{vector(r.running_mean), vector(r.running_variance)};
  Kernel::measure<T>(stream, matrix(c.x), vector(c.weight), c.epsilon, c.momentum, running, s, partial.data(),
                     c.layout);
  Kernel::forward<T>(stream, matrix(c.x), s, vector(c.bias), activation, matrix(r.y), c.layout);
  Kernel::backward<T>(stream, matrix(c.dy), matrix(c.x), s, vector(c.bias), activation, matrix(r.dx), how,
                      vector(r.dweight), how, vector(r.dbias), how, partial.data(), c.layout);
  Kernel::use_running_averages<T>(stream, running, vector(c.weight), c.epsilon,
                                  {vector(recalled_mean), vector(recalled_reciprocal), vector(r.recalled)});
  return r;
}

/// Sequences with these numbers of tokens.
struct Lengths {
  std::vector<std::int32_t> lengths;
  std::vector<Index> positions{std::vector<Index>(lengths.size())};

  [[nodiscard]] kernel::SequenceLayout<HostSpace> layout(Index length) const {
    return kernel::SequenceLayout<HostSpace>::padded(length, view(lengths, lengths.size()),
                                                     view(positions, lengths.size()));
  }
};
template <class T>
struct Sequences : private Lengths, lockstep_test::BatchNormSequences<T> {
  Sequences(std::vector<std::int32_t> of, Index length, Index width)
      : Lengths{std::move(of)}, lockstep_test::BatchNormSequences<T>(layout(length), width) {}
};

/// Whether two runs have results equal within a bound; with a bound of zero, bit-identical.
template <class T>
bool near(std::vector<T> const& a, std::vector<T> const& b, double bound) {
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    if (!(std::abs(static_cast<double>(a[i] - b[i])) <= bound)) return false;
  return a.size() == b.size();
}
}  // namespace

TEST_CASE_TEMPLATE("statistics, values and gradients follow their definitions", T, float, double) {
  // A channel's chunk sums at most 16384 terms of size one to four in T, the rest is double: relative to the largest
  // intermediate, of size 1/sqrt(epsilon) = 32 at most after the reciprocal, (n + 16) epsilon holds for the mean and
  // its dependents. n is the rows of one chunk.
  for (Index width : {1, 15, 16, 17, 33}) {
    Index const chunk = 16384 / width;
    for (Index rows : {Index{1}, Index{2}, Index{31}, chunk, chunk + 1, chunk + chunk / 3}) {
      for (auto activation : {Activation::none, Activation::relu}) {
        for (auto how : {Write::overwrite, Write::add}) {
          BatchNormCase<T> const k{rows, width};
          auto const got = run(k, activation, how);
          auto const expected = lockstep_test::batch_norm_defined({rows, width}, activation, how);
          double const unit = static_cast<double>(std::numeric_limits<T>::epsilon()),
                       bound = (static_cast<double>(std::min(rows, chunk)) + 16) * unit * 32;
          double worst = 0;
          for (Index c = 0; c < width; ++c) {
            auto const i = static_cast<std::size_t>(c);
            auto const off = [&](T value, double from, double size) {
              double const error = std::abs(static_cast<double>(value) - from) / size;
              worst = std::isnan(error) ? error : std::max(worst, error);
            };
            off(got.mean[i], expected.mean[i], 1);
            off(got.reciprocal[i], expected.reciprocal[i], 32);
            off(got.dbias[i], expected.dbias[i], static_cast<double>(rows));
            off(got.dweight[i], expected.dweight[i], 4 * static_cast<double>(rows));
            for (Index r = 0; r < rows; r += std::max<Index>(1, rows / 50)) {
              auto const j = static_cast<std::size_t>(r * width + c);
              off(got.y[j], expected.y[j], 1);
              off(got.dx[j], expected.dx[j], 32);
            }
            off(got.running_mean[i], expected.running_mean[i], 1);
            off(got.running_variance[i], expected.running_variance[i], 1);
            off(got.recalled[i], expected.recalled[i], 1);
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
  BatchNormCase<float> const k{0, 5};
  auto const got = run(k, Activation::relu, Write::overwrite);
  for (std::size_t c = 0; c < 5; ++c) {
    CHECK(got.mean[c] == 0);
    CHECK(got.dweight[c] == 0);
    CHECK(got.dbias[c] == 0);
    CHECK(got.running_mean[c] == k.running_mean[c]);
  }
}

TEST_CASE_TEMPLATE("rows on several replicas count as one batch", T, float, double) {
  for (auto activation : {Activation::none, Activation::relu})
    for (Index width : {1, 17}) {
      BatchNormCase<T> const k{700, width};
      auto const whole = run(k, activation, Write::add);
      std::vector<Index> const ends{0, 300, 300, 301, 700};  // the second has none
      auto const replicas = std::ssize(ends) - 1;
      ThreadPool pool(2);
      memory::Stream<HostSpace> const stream(pool);
      auto const per_channel = [&] { return std::vector<T>(k.weight.size()); };
      std::vector<double> moments(static_cast<std::size_t>(replicas * Kernel::moment_elements(width)));
      std::vector<T> partial(static_cast<std::size_t>(Kernel::partial_elements(k.rows, width))),
          means(2 * k.bias.size()), sums(static_cast<std::size_t>(replicas) * means.size()),
          mean = per_channel(), reciprocal = per_channel(), scale = per_channel(), dweight(k.weight.size(), T{1}),
          dbias(dweight), dx(k.x.size(), T{1}), running_mean(k.running_mean), running_variance(k.running_variance);
      Kernel::Statistics<T> const s{view(mean, width), view(reciprocal, width), view(scale, width)};
      auto const part = [&](auto& all, Index r) {
        auto const first = ends[static_cast<std::size_t>(r)], rows = ends[static_cast<std::size_t>(r) + 1] - first;
        return TensorView<std::remove_reference_t<decltype(*all.data())>, 2, HostSpace>{all.data() + first * width,
                                                                                        {rows, width}};
      };
      for (Index r = 0; r < replicas; ++r)
        Kernel::moments<T>(stream, part(k.x, r), partial.data(), moments.data() + r * Kernel::moment_elements(width));
      Kernel::measure_merged<T>(stream, replicas, moments.data(), view(k.weight, width), BatchNormCase<T>::epsilon,
                                BatchNormCase<T>::momentum, {view(running_mean, width), view(running_variance, width)},
                                s);
      for (Index r = 0; r < replicas; ++r)
        Kernel::sums<T>(stream, part(k.dy, r), part(k.x, r), s, view(k.bias, width), activation, view(dweight, width),
                        Write::add, view(dbias, width), Write::add, partial.data(), sums.data() + r * 2 * width);
      Kernel::means<T>(stream, replicas, width, sums.data(), moments.data(), means.data());
      for (Index r = 0; r < replicas; ++r)
        Kernel::input_gradient<T>(stream, part(k.dy, r), part(k.x, r), s, view(k.bias, width), activation, means.data(),
                                  part(dx, r), Write::add);
      // As many roundings as in the first case, of sums divided differently.
      double const bound = (700 + 16) * static_cast<double>(std::numeric_limits<T>::epsilon()) * 32;
      CHECK(near(mean, whole.mean, bound));
      CHECK(near(scale, whole.scale, bound));
      CHECK(near(running_variance, whole.running_variance, bound));
      CHECK(near(dweight, whole.dweight, bound * 700));
      CHECK(near(dbias, whole.dbias, bound * 700));
      CHECK(near(dx, whole.dx, bound));
    }
}

TEST_CASE_TEMPLATE("sequences give the results of the matrix of their tokens, and zeros in padding", T, float, double) {
  std::vector<std::int32_t> many;  // over several chunks, some of which are entirely padding
  for (int i = 0; i < 8; ++i) many.push_back(i % 4 == 3 ? 1100 : i * 7 % 40);
  for (auto const& of :
       {std::pair{std::vector<std::int32_t>{5, 0, 1, 9, 3}, Index{9}}, {{0, 0, 2, 0}, 3}, {{1}, 4}, {many, 1100}})
    for (Index width : {1, 17, 33})
      for (auto activation : {Activation::none, Activation::relu})
        for (auto how : {Write::overwrite, Write::add}) {
          CAPTURE(of.first.size());
          CAPTURE(width);
          Sequences<T> const k(of.first, of.second, width);
          auto const got = run(k.padded, activation, how), expected = run(k.tokens, activation, how);
          // Within one chunk the sums have equal terms in equal order; over several, the bound of the first case.
          bool const one = k.padded.rows * width <= 16384;
          double const terms = static_cast<double>(std::min<Index>(k.tokens.rows, 16384 / width)),
                       bound = one ? 0 : (terms + 16) * static_cast<double>(std::numeric_limits<T>::epsilon()) * 32;
          auto const all = static_cast<double>(k.tokens.rows);
          CHECK(near(got.mean, expected.mean, bound));
          CHECK(near(got.reciprocal, expected.reciprocal, bound));
          CHECK(near(got.scale, expected.scale, bound));
          CHECK(near(got.running_mean, expected.running_mean, bound));
          CHECK(near(got.running_variance, expected.running_variance, bound));
          CHECK(near(got.dweight, expected.dweight, 4 * bound * all));
          CHECK(near(got.dbias, expected.dbias, bound * all));
          CHECK(near(k.of_tokens(got.y, 0), expected.y, bound));
          CHECK(near(k.of_tokens(got.dx, how == Write::add ? 1 : 0), expected.dx, bound));
        }
}

TEST_CASE_TEMPLATE("sequences without padding have a matrix's bits", T, float, double) {
  Sequences<T> const k(std::vector<std::int32_t>(60, 50), 50, 33);
  for (auto how : {Write::overwrite, Write::add}) {
    auto const got = run(k.padded, Activation::relu, how), expected = run(k.tokens, Activation::relu, how);
    CHECK(got.mean == expected.mean);
    CHECK(got.scale == expected.scale);
    CHECK(got.running_variance == expected.running_variance);
    CHECK(got.y == expected.y);
    CHECK(got.dx == expected.dx);
    CHECK(got.dweight == expected.dweight);
    CHECK(got.dbias == expected.dbias);
  }
}

TEST_CASE("without tokens, sums and outputs are zero") {
  Sequences<float> const k({0, 0, 0}, 4, 5);
  auto const got = run(k.padded, Activation::relu, Write::overwrite);
  std::vector<float> const zeros(5), everywhere(60);
  CHECK(got.mean == zeros);
  CHECK(got.dweight == zeros);
  CHECK(got.dbias == zeros);
  CHECK(got.running_mean == k.padded.running_mean);
  CHECK(got.running_variance == k.padded.running_variance);
  CHECK(got.y == everywhere);
  CHECK(got.dx == everywhere);
}

TEST_CASE_TEMPLATE("tokens on several replicas count as one batch, whatever their padding", T, float, double) {
  Index const width = 17;
  std::vector<Sequences<T>> replicas;  // the third has no tokens, the fourth no sequences
  replicas.emplace_back(std::vector<std::int32_t>{5, 0, 3}, 7, width);
  replicas.emplace_back(std::vector<std::int32_t>{2, 9}, 9, width);
  replicas.emplace_back(std::vector<std::int32_t>{0}, 2, width);
  replicas.emplace_back(std::vector<std::int32_t>{}, 2, width);
  BatchNormCase<T> all{19, width};
  all.x.clear(), all.dy.clear();
  for (auto const& r : replicas) {
    all.x.insert(all.x.end(), r.tokens.x.begin(), r.tokens.x.end());
    all.dy.insert(all.dy.end(), r.tokens.dy.begin(), r.tokens.dy.end());
  }
  auto const whole = run(all, Activation::none, Write::overwrite);
  ThreadPool pool(2);
  memory::Stream<HostSpace> const stream(pool);
  auto const count = std::ssize(replicas), each = Kernel::moment_elements(width);
  auto const per_channel = [&] { return std::vector<T>(all.weight.size()); };
  std::vector<double> moments(static_cast<std::size_t>(count * each));
  std::vector<T> partial(static_cast<std::size_t>(Kernel::partial_elements(100, width))), means(2 * all.bias.size()),
      sums(replicas.size() * means.size()), mean = per_channel(), reciprocal = per_channel(), scale = per_channel(),
                                            dweight = per_channel(), dbias = per_channel(),
                                            running_mean(all.running_mean), running_variance(all.running_variance);
  Kernel::Statistics<T> const s{view(mean, width), view(reciprocal, width), view(scale, width)};
  auto const of = [&](std::vector<T> const& values_there, std::size_t r) {
    return view(values_there, replicas[r].padded.rows, width);
  };
  for (std::size_t r = 0; r < replicas.size(); ++r) {
    auto const& k = replicas[r];
    auto* const to = moments.data() + static_cast<Index>(r) * each;
    Kernel::moments<T>(stream, of(k.padded.x, r), partial.data(), to, k.padded.layout);
    CHECK(*to == static_cast<double>(k.tokens.rows));
  }
  Kernel::measure_merged<T>(stream, count, moments.data(), view(std::as_const(all.weight), width),
                            BatchNormCase<T>::epsilon, BatchNormCase<T>::momentum,
                            {view(running_mean, width), view(running_variance, width)}, s);
  for (std::size_t r = 0; r < replicas.size(); ++r)
    Kernel::sums<T>(stream, of(replicas[r].padded.dy, r), of(replicas[r].padded.x, r), s,
                    view(std::as_const(all.bias), width), Activation::none, view(dweight, width), Write::add,
                    view(dbias, width), Write::add, partial.data(), sums.data() + r * means.size(),
                    replicas[r].padded.layout);
  Kernel::means<T>(stream, count, width, sums.data(), moments.data(), means.data());
  // As in the first case, of 19 rows.
  double const bound = (19 + 16) * static_cast<double>(std::numeric_limits<T>::epsilon()) * 32;
  std::vector<T> dx;
  for (std::size_t r = 0; r < replicas.size(); ++r) {
    auto const& k = replicas[r];
    std::vector<T> here(k.padded.x.size(), std::numeric_limits<T>::quiet_NaN());
    Kernel::input_gradient<T>(stream, of(k.padded.dy, r), of(k.padded.x, r), s, view(std::as_const(all.bias), width),
                              Activation::none, means.data(), view(here, k.padded.rows, width), Write::overwrite,
                              k.padded.layout);
    auto const of_tokens = k.of_tokens(here, 0);
    CHECK(of_tokens.size() == k.tokens.x.size());
    dx.insert(dx.end(), of_tokens.begin(), of_tokens.end());
  }
  CHECK(near(mean, whole.mean, bound));
  CHECK(near(scale, whole.scale, bound));
  CHECK(near(running_variance, whole.running_variance, bound));
  CHECK(near(dweight, whole.dweight, bound * 4 * 19));
  CHECK(near(dbias, whole.dbias, bound * 19));
  CHECK(near(dx, whole.dx, bound));
}

TEST_CASE_TEMPLATE("bits do not depend on threads", T, float, double) {
  std::vector<std::int32_t> lengths;
  for (int i = 0; i < 30; ++i) lengths.push_back(i * 37 % 101);
  Sequences<T> const sequences(lengths, 100, 33);
  for (auto const& k : {BatchNormCase<T>{3000, 33}, sequences.padded}) {
    auto const one = run(k, Activation::relu, Write::overwrite, 1),
               four = run(k, Activation::relu, Write::overwrite, 4);
    CHECK(one.y == four.y);
    CHECK(one.dx == four.dx);
    CHECK(one.dweight == four.dweight);
    CHECK(one.running_variance == four.running_variance);
  }
}

TEST_CASE("evaluation uses the running averages") {
  ThreadPool pool(1);
  std::vector<double> mean{2}, variance{3}, weight{5}, m(1), r(1), s(1);
  Kernel::use_running_averages<double>(memory::Stream<HostSpace>(pool), {view(mean, 1), view(variance, 1)},
                                       view(std::as_const(weight), 1), 1, {view(m, 1), view(r, 1), view(s, 1)});
  CHECK(m[0] == 2);
  CHECK(r[0] == 0.5);
  CHECK(s[0] == 2.5);
}

TEST_CASE("a large mean does not hide the deviation: the sum's roundings are corrected") {
  constexpr Index rows = 16384, width = 3;
  struct Kind {
    double mean, deviation;
  };
  for (auto const& [mean, deviation] : {Kind{1e5, 10}, {1.7e9, 1e5}, {1.7e9, 1e3}, {1e8, 20}, {1000.3, 0.01}}) {
    BatchNormCase<float> rounded{rows, width};
    for (auto& each : rounded.x) each = static_cast<float>(mean + deviation * static_cast<double>(each));
    BatchNormCase<double> exact{rows, width};
    std::copy(rounded.x.begin(), rounded.x.end(), exact.x.begin());
    auto const found = run(rounded, Activation::none, Write::overwrite);
    auto const defined = lockstep_test::batch_norm_defined(exact, Activation::none, Write::overwrite);
    for (std::size_t c = 0; c < static_cast<std::size_t>(width); ++c) {
      CHECK(std::abs(static_cast<double>(found.mean[c]) - defined.mean[c]) <= 0x1p-24 * mean + 1e-3 * deviation);
      CHECK(static_cast<double>(found.reciprocal[c]) == doctest::Approx(defined.reciprocal[c]).epsilon(1e-3));
    }
  }
}

TEST_CASE_TEMPLATE("a constant channel of any size becomes the bias", T, float, double) {
  constexpr Index rows = 16384;
  for (double const value : {0.0, 0.1, 3e7, 1e8, -1.7e9, 1e15}) {
    CAPTURE(value);
    BatchNormCase<T> c{rows, 1};
    std::fill(c.x.begin(), c.x.end(), static_cast<T>(value));
    auto const found = run(c, Activation::none, Write::overwrite);
    CHECK(found.mean[0] == static_cast<T>(value));
    CHECK(found.reciprocal[0] == static_cast<T>(1 / std::sqrt(c.epsilon)));
    for (Index r = 0; r < rows; r += 4095) CHECK(found.y[static_cast<std::size_t>(r)] == c.bias[0]);
  }
}
