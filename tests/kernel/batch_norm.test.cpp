// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/batch_norm.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>

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
  kernel::SequenceLayout<HostSpace> layout{};

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
                       {view(r.running_mean, width), view(r.running_variance, width)}, s, partial.data(), layout);
    Kernel::forward<T>(stream, in, s, view(bias, width), activation, view(r.y, rows, width), layout);
    Kernel::backward<T>(stream, view(dy, rows, width), in, s, view(bias, width), activation, view(r.dx, rows, width),
                        how, view(r.dweight, width), how, view(r.dbias, width), how, partial.data(), layout);
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

/// Sequences of so many tokens, with nan in their padding; and their tokens alone, as a matrix.
template <class T>
struct Sequences {
  std::vector<std::int32_t> lengths;
  std::vector<Index> positions;
  Case<T> padded, tokens;

  Sequences(std::vector<std::int32_t> of, Index length, Index width)
      : lengths(std::move(of)),
        positions(lengths.size()),
        padded{std::ssize(lengths) * length, width},
        tokens{std::accumulate(lengths.begin(), lengths.end(), Index{0}), width} {
    padded.layout = kernel::SequenceLayout<HostSpace>::padded(length, view(std::as_const(lengths), lengths.size()),
                                                              view(std::as_const(positions), lengths.size()));
    put(tokens.x, padded.x);
    put(tokens.dy, padded.dy);
  }
  void put(std::vector<T> const& from, std::vector<T>& to) const {
    auto next = from.begin();
    for (Index slot = 0; slot < padded.rows; ++slot)
      for (Index c = 0; c < padded.width; ++c)
        to[static_cast<std::size_t>(slot * padded.width + c)] =
            padded.layout.is_token(slot) ? *next++ : std::numeric_limits<T>::quiet_NaN();
  }
  /// What stands in tokens; in padding there is `expected` alone.
  [[nodiscard]] std::vector<T> of_tokens(std::vector<T> const& all, T expected) const {
    std::vector<T> out;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (padded.layout.is_token(static_cast<Index>(i) / padded.width))
        out.push_back(all[i]);
      else if (all[i] != expected)
        return {};
    return out;
  }
};

/// Whether two runs have the same results, but for a bound; where that is zero, bit for bit.
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
      CHECK(near(mean, whole.mean, bound));
      CHECK(near(scale, whole.scale, bound));
      CHECK(near(running_variance, whole.running_variance, bound));
      CHECK(near(dweight, whole.dweight, bound * 700));
      CHECK(near(dbias, whole.dbias, bound * 700));
      CHECK(near(dx, whole.dx, bound));
    }
}

TEST_CASE_TEMPLATE("sequences give what the matrix of their tokens gives, and nothing in padding", T, float, double) {
  std::vector<std::int32_t> many;  // over several chunks, some of which are padding altogether
  for (int i = 0; i < 20; ++i) many.push_back(i % 5 == 4 ? 1100 : i * 7 % 40);
  for (auto const& of :
       {std::pair{std::vector<std::int32_t>{5, 0, 1, 9, 3}, Index{9}}, {{0, 0, 2, 0}, 3}, {{1}, 4}, {many, 1100}})
    for (Index width : {1, 17, 33})
      for (auto activation : {Activation::none, Activation::relu})
        for (auto how : {Write::overwrite, Write::add}) {
          CAPTURE(of.first.size());
          CAPTURE(width);
          Sequences<T> const k(of.first, of.second, width);
          auto const got = k.padded.run(activation, how), expected = k.tokens.run(activation, how);
          // Within one chunk the sums have the same terms in the same order; of several, those of the first case.
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
    auto const got = k.padded.run(Activation::relu, how), expected = k.tokens.run(Activation::relu, how);
    CHECK(got.mean == expected.mean);
    CHECK(got.scale == expected.scale);
    CHECK(got.running_variance == expected.running_variance);
    CHECK(got.y == expected.y);
    CHECK(got.dx == expected.dx);
    CHECK(got.dweight == expected.dweight);
    CHECK(got.dbias == expected.dbias);
  }
}

TEST_CASE("no tokens at all: sums and outputs of zero") {
  Sequences<float> const k({0, 0, 0}, 4, 5);
  auto const got = k.padded.run(Activation::relu, Write::overwrite);
  std::vector<float> const zeros(5), everywhere(60);
  CHECK(got.mean == zeros);
  CHECK(got.dweight == zeros);
  CHECK(got.dbias == zeros);
  CHECK(got.running_mean == k.padded.running);
  CHECK(got.running_variance == k.padded.running);
  CHECK(got.y == everywhere);
  CHECK(got.dx == everywhere);
}

TEST_CASE_TEMPLATE("tokens on several replicas count as one, whatever their padding", T, float, double) {
  Index const width = 17;
  std::vector<Sequences<T>> replicas;  // the third has no tokens, the fourth no sequences
  replicas.emplace_back(std::vector<std::int32_t>{5, 0, 3}, 7, width);
  replicas.emplace_back(std::vector<std::int32_t>{2, 9}, 9, width);
  replicas.emplace_back(std::vector<std::int32_t>{0}, 2, width);
  replicas.emplace_back(std::vector<std::int32_t>{}, 2, width);
  Case<T> all{19, width};
  all.x.clear(), all.dy.clear();
  for (auto const& r : replicas) {
    all.x.insert(all.x.end(), r.tokens.x.begin(), r.tokens.x.end());
    all.dy.insert(all.dy.end(), r.tokens.dy.begin(), r.tokens.dy.end());
  }
  auto const whole = all.run(Activation::none, Write::overwrite);
  ThreadPool pool(2);
  memory::Stream<HostSpace> const stream(pool);
  auto const count = std::ssize(replicas), each = Kernel::moment_elements(width);
  auto const per_channel = [&] { return std::vector<T>(all.weight.size()); };
  std::vector<double> moments(static_cast<std::size_t>(count * each));
  std::vector<T> partial(static_cast<std::size_t>(Kernel::partial_elements(100, width))), means(2 * all.bias.size()),
      sums(replicas.size() * means.size()), mean = per_channel(), reciprocal = per_channel(), scale = per_channel(),
                                            dweight = per_channel(), dbias = per_channel(), running_mean(all.running),
                                            running_variance(all.running);
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
  Kernel::measure_all<T>(stream, count, moments.data(), view(std::as_const(all.weight), width), epsilon, 0.25,
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
  for (auto const& k : {Case<T>{3000, 33}, sequences.padded}) {
    auto const one = k.run(Activation::relu, Write::overwrite, 1), four = k.run(Activation::relu, Write::overwrite, 4);
    CHECK(one.y == four.y);
    CHECK(one.dx == four.dx);
    CHECK(one.dweight == four.dweight);
    CHECK(one.running_variance == four.running_variance);
  }
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
