// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>
#include <lockstep/kernel/attention.hpp>

#include "kernel/values.hpp"
#include "kernel/view.hpp"

using namespace lockstep;
using kernel::DropoutMask;
using lockstep_test::values;
using lockstep_test::view;
using Kernel = kernel::Attention<HostSpace>;

namespace {

template <class T>
struct Result {
  std::vector<T> out, log_sums, dquery, dkey, dvalue;
  bool operator==(Result const&) const = default;
};

/// Lengths are full, empty, one and about a third, in turn; padding of the inputs is nan and must not be read.
template <class T>
struct Batch {
  Index rows, length, heads, head_width;
  DropoutMask mask;
  std::vector<std::int32_t> lengths;
  std::vector<Index> positions;
  std::vector<T> query, key, value, dout;

  Batch(Index row_count, Index slots, Index head_count, Index channels, double dropout)
      : rows(row_count),
        length(slots),
        heads(head_count),
        head_width(channels),
        mask(DropoutMask::of(21, dropout)),
        query(values<T>(size(), 1, 2)),
        key(values<T>(size(), 2, 2)),
        value(values<T>(size(), 3)),
        dout(values<T>(size(), 4)) {
    for (Index r = 0; r < rows; ++r) {
      Index const some[] = {length, 0, std::min<Index>(1, length), (length + 2) / 3};
      lengths.push_back(static_cast<std::int32_t>(some[r % 4]));
      positions.push_back(900 + r);
      for (Index i = lengths.back() * width(); i < length * width(); ++i)
        for (auto* x : {&query, &key, &value, &dout})
          (*x)[static_cast<std::size_t>(r * length * width() + i)] = std::numeric_limits<T>::quiet_NaN();
    }
  }
  [[nodiscard]] Index width() const { return heads * head_width; }
  [[nodiscard]] Index size() const { return rows * length * width(); }

  [[nodiscard]] Result<T> run(int threads, Write write = Write::overwrite, T before = T{-7}) const {
    ThreadPool pool(threads);
    memory::Stream<HostSpace> const stream(pool);
    auto const n = query.size();
    Result<T> r{std::vector<T>(n, T{-7}), std::vector<T>(static_cast<std::size_t>(rows * heads * length)),
                std::vector<T>(n, before), std::vector<T>(n, before), std::vector<T>(n, before)};
    auto const tensor = [&](auto& x) { return view(x, rows * length, width()); };
    auto const layout = kernel::SequenceLayout<HostSpace>::padded(length, view(lengths, rows), view(positions, rows));
    Kernel::Inputs<T> const in{.query = tensor(query),
                               .key = tensor(key),
                               .value = tensor(value),
                               .queries = layout,
                               .keys = layout,
                               .heads = heads,
                               .scale = 1 / std::sqrt(static_cast<double>(head_width)),
                               .mask = mask};
    std::vector<T> memory(static_cast<std::size_t>(Kernel::scratch<T>(stream, in)));
    Kernel::forward<T>(stream, in, tensor(r.out), view(r.log_sums, rows * heads, length), view(memory, memory.size()));
    Kernel::backward<T>(stream, in, tensor(r.out), view(r.log_sums, rows * heads, length), tensor(dout),
                        {{r.dquery.data(), write}, {r.dkey.data(), write}, {r.dvalue.data(), write}},
                        view(memory, memory.size()));
    return r;
  }
};

/// A number and how far a float computation of it may be from it.
struct Bounded {
  double value = 0, error = 0;
};

/// The definition in double, one head of one row, with a running error bound for arithmetic of unit roundoff u: a
/// product moves by |a| db + |b| da, a sum of n terms by u n sum |terms| besides what its terms move by.
template <class T>
class Reference {
 public:
  Reference(Batch<T> const& batch, Index row, Index head)
      : b(batch), r(row), h(head), n(batch.lengths[static_cast<std::size_t>(row)]), d(batch.head_width) {
    scores_to_probabilities();
    for (Index i = 0; i < n; ++i)
      for (Index c = 0; c < d; ++c) out.push_back(out_at(i, c));
    score_gradients();
  }
  [[nodiscard]] Bounded dquery(Index i, Index c) const {
    return sum(
        n, [&](Index j) { return product(ds[at(i, j)], in(b.key, j, c)); }, scale());
  }
  [[nodiscard]] Bounded dkey(Index j, Index c) const {
    return sum(
        n, [&](Index i) { return product(ds[at(i, j)], in(b.query, i, c)); }, scale());
  }
  [[nodiscard]] Bounded dvalue(Index j, Index c) const {
    return sum(n, [&](Index i) { return product(dropped(i, j), in(b.dout, i, c)); });
  }
  std::vector<Bounded> out;

 private:
  [[nodiscard]] std::size_t at(Index i, Index j) const { return static_cast<std::size_t>(i * n + j); }
  [[nodiscard]] double scale() const { return 1 / std::sqrt(static_cast<double>(d)); }
  [[nodiscard]] double in(std::vector<T> const& x, Index t, Index c) const {
    return static_cast<double>(x[static_cast<std::size_t>((r * b.length + t) * b.width() + h * d + c)]);
  }
  static Bounded product(Bounded x, double y) { return {x.value * y, (x.error + u * std::abs(x.value)) * std::abs(y)}; }
  template <class F>
  static Bounded sum(Index count, F const& term, double factor = 1) {
    Bounded total;
    double magnitude = 0;
    for (Index k = 0; k < count; ++k) {
      Bounded const t = term(k);
      total.value += t.value;
      total.error += t.error;
      magnitude += std::abs(t.value);
    }
    // factor is rounded, and so is its product
    return {total.value * factor, (total.error + u * static_cast<double>(count + 2) * magnitude) * factor};
  }
  [[nodiscard]] double factor(Index i, Index j) const {
    if (!b.mask.active()) return 1;
    auto const element = (h * n + i) * ((n + 7) / 8 * 8) + j;
    return b.mask.keeps(static_cast<std::uint64_t>(b.positions[static_cast<std::size_t>(r)]),
                        static_cast<std::uint64_t>(element))
               ? b.mask.scale()
               : 0;
  }
  [[nodiscard]] Bounded dropped(Index i, Index j) const {
    auto const p = product(probabilities[at(i, j)], factor(i, j));
    return {p.value, p.error + u * std::abs(p.value)};  // the scale is rounded, too
  }

  void scores_to_probabilities() {
    for (Index i = 0; i < n; ++i) {
      std::vector<Bounded> s;
      for (Index j = 0; j < n; ++j)
        s.push_back(sum(
            d,
            [&](Index c) {
              return product({in(b.query, i, c), 0}, in(b.key, j, c));
            },
            scale()));
      double most = s.empty() ? 0 : s[0].value, total = 0, moved = 0, log_sum = 0;
      for (auto const& x : s) most = std::max(most, x.value);
      for (auto const& x : s) total += std::exp(x.value - most);
      log_sum = most + std::log(total);
      // The logarithm of an exponential moves by its argument's error, the rounding of the subtraction (of the largest
      // or, in backward, of the logarithm of the sum) and 2 units (4 u) of its own; that of the sum by the mean over
      // its terms of these, and by its additions, of which there are n / 16 + 16. The logarithm itself rounds once
      // more.
      std::vector<double> each;
      for (auto const& x : s) each.push_back(x.error + u * (std::max(most - x.value, log_sum - x.value) + 6));
      for (std::size_t j = 0; j < s.size(); ++j) moved += std::exp(s[j].value - log_sum) * each[j];
      double const sum_error = moved + u * (static_cast<double>(n) / 16 + 18 + 2 * std::abs(log_sum));
      for (std::size_t j = 0; j < s.size(); ++j) {
        double const p = std::exp(s[j].value - log_sum);
        probabilities.push_back({p, p * (each[j] + sum_error) * 1.01});  // 1.01: exp(x) - 1 for small x
      }
    }
  }
  [[nodiscard]] Bounded out_at(Index i, Index c) const {
    return sum(n, [&](Index j) { return product(dropped(i, j), in(b.value, j, c)); });
  }
  void score_gradients() {
    for (Index i = 0; i < n; ++i) {
      auto const mean =
          sum(d, [&](Index c) { return product(out[static_cast<std::size_t>(i * d + c)], in(b.dout, i, c)); });
      for (Index j = 0; j < n; ++j) {
        auto const dp = sum(d, [&](Index c) { return product({in(b.dout, i, c), 0}, in(b.value, j, c)); });
        auto const drop = product(dp, factor(i, j));
        auto const p = probabilities[at(i, j)];
        double const difference = drop.value - mean.value;
        double const error = drop.error + mean.error + u * (2 * std::abs(drop.value) + std::abs(difference));
        ds.push_back({p.value * difference, p.error * std::abs(difference) + (p.value + p.error) * error +
                                                u * std::abs(p.value * difference)});
      }
    }
  }

  // Double is checked against double: both round, and the reference without care for it.
  static constexpr double u = std::numeric_limits<T>::epsilon() / 2 * (sizeof(T) == 8 ? 4 : 1);
  Batch<T> const& b;
  Index r, h, n, d;
  std::vector<Bounded> probabilities, ds;
};

template <class T>
void check(Batch<T> const& batch, Result<T> const& got, T before = T{0}) {
  bool agree = true, zero = true;
  double closest = 0;
  for (Index r = 0; r < batch.rows; ++r)
    for (Index h = 0; h < batch.heads; ++h) {
      Reference<T> const reference(batch, r, h);
      Index const n = batch.lengths[static_cast<std::size_t>(r)], d = batch.head_width;
      for (Index t = 0; t < batch.length; ++t)
        for (Index c = 0; c < d; ++c) {
          auto const i = static_cast<std::size_t>((r * batch.length + t) * batch.width() + h * d + c);
          if (t >= n) {
            zero =
                zero && got.out[i] == 0 && got.dquery[i] == before && got.dkey[i] == before && got.dvalue[i] == before;
            continue;
          }
          auto const near = [&](T x, Bounded expected, T start) {
            double const error = std::abs(static_cast<double>(x) - static_cast<double>(start) - expected.value);
            double const extra = std::numeric_limits<T>::epsilon() * static_cast<double>(std::abs(start)) * 4;
            if (expected.error + extra > 0) closest = std::max(closest, error / (expected.error + extra));
            agree = agree && error <= expected.error + extra;
          };
          near(got.out[i], reference.out[static_cast<std::size_t>(t * d + c)], T{0});
          near(got.dquery[i], reference.dquery(t, c), before);
          near(got.dkey[i], reference.dkey(t, c), before);
          near(got.dvalue[i], reference.dvalue(t, c), before);
        }
    }
  CAPTURE(closest);
  CHECK(agree);
  CHECK(zero);
}

}  // namespace

TEST_CASE_TEMPLATE("attention: the definition, forward and backward", T, float, double) {
  for (double dropout : {0.0, 0.3})
    for (Index rows : {0, 1, 4})
      for (Index length : {1, 2, 7, 31, 33, 128, 129, 150})
        for (auto const& shape : {std::array<Index, 2>{1, 1}, {2, 5}, {3, 16}, {1, 32}}) {
          Index const heads = shape[0], head_width = shape[1];
          CAPTURE(dropout);
          CAPTURE(rows);
          CAPTURE(length);
          CAPTURE(heads);
          CAPTURE(head_width);
          Batch<T> const batch(rows, length, heads, head_width, dropout);
          check(batch, batch.run(2));
        }
}

TEST_CASE_TEMPLATE("attention: gradients may be added", T, float, double) {
  Batch<T> const batch(4, 140, 2, 8, 0.2);
  check(batch, batch.run(2, Write::add, T{0.5}), T{0.5});
}

TEST_CASE("attention: rows without slots") {
  Batch<float> const batch(3, 0, 2, 4, 0.1);
  CHECK(batch.run(2).out.empty());
}

TEST_CASE("attention: scores far apart neither overflow nor give nan") {
  Batch<float> batch(1, 20, 1, 4, 0);
  for (auto* x : {&batch.query, &batch.key})
    for (auto& e : *x) e *= 1e15f;
  auto const got = batch.run(1);
  for (auto* x : {&got.out, &got.dquery, &got.dkey, &got.dvalue})
    for (float e : *x) CHECK(std::isfinite(e));
}

TEST_CASE("attention: the same bits for any number of threads, and again") {
  Batch<float> const batch(9, 140, 4, 8, 0.1);
  for (auto write : {Write::overwrite, Write::add}) {
    auto const one = batch.run(1, write, 0.25f);
    for (int threads : {1, 2, 3, 4})
      for (int repetition = 0; repetition < 3; ++repetition) CHECK(batch.run(threads, write, 0.25f) == one);
  }
}

TEST_CASE("attention: row and padding do not matter, dropout included") {
  Batch<float> const batch(4, 100, 2, 8, 0.3);
  Batch<float> alone(1, 140, 2, 8, 0.3);
  alone.lengths = {batch.lengths[3]};
  alone.positions = {batch.positions[3]};
  auto const tokens = static_cast<std::ptrdiff_t>(batch.lengths[3]) * 16;
  REQUIRE(tokens > 16);
  auto const take = [&](std::vector<float> const& from, std::vector<float>& to) {
    std::copy_n(from.begin() + 3 * 100 * 16, tokens, to.begin());
  };
  take(batch.query, alone.query);
  take(batch.key, alone.key);
  take(batch.value, alone.value);
  take(batch.dout, alone.dout);
  auto const all = batch.run(2), one = alone.run(2);
  auto const same = [&](std::vector<float> const& x, std::vector<float> const& y) {
    return std::equal(x.begin(), x.begin() + tokens, y.begin() + 3 * 100 * 16);
  };
  CHECK(same(one.out, all.out));
  CHECK(same(one.dquery, all.dquery));
  CHECK(same(one.dkey, all.dkey));
  CHECK(same(one.dvalue, all.dvalue));
}

TEST_CASE("attention: shapes that do not fit are refused with the numbers") {
  Batch<float> batch(1, 3, 2, 3, 0);
  ++batch.heads;  // a width of 9 was not allocated, but nothing is read
  batch.head_width = 2;
  CHECK_NOTHROW(static_cast<void>(batch.run(1)));
  ThreadPool pool(1);
  std::vector<float> x(24), memory(10'000);
  std::vector<std::int32_t> const lengths{3};
  std::vector<Index> const positions{0};
  auto const run = [&](Index heads, Index key_rows) {
    memory::Stream<HostSpace> const stream(pool);
    auto const layout = kernel::SequenceLayout<HostSpace>::padded(3, view(lengths, 1), view(positions, 1));
    Kernel::forward<float>(stream,
                           {.query = view(x, 3, 8),
                            .key = view(x, key_rows, 8),
                            .value = view(x, 3, 8),
                            .queries = layout,
                            .keys = layout,
                            .heads = heads,
                            .scale = 1},
                           view(x, 3, 8), view(x, 3, 8), view(memory, 10'000));
  };
  CHECK_THROWS_WITH_AS(run(3, 3), doctest::Contains("3 heads do not divide a width of 8"), ShapeError);
  CHECK_THROWS_WITH_AS(run(0, 3), doctest::Contains("0 heads do not divide a width of 8"), ShapeError);
  CHECK_THROWS_WITH_AS(run(2, 2), doctest::Contains("key [2, 8]"), ShapeError);
}
