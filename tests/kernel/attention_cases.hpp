// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <lockstep/kernel/dropout_mask.hpp>
#include <lockstep/kernel/sequence_layout.hpp>
#include <lockstep/memory/space.hpp>

#include "values.hpp"
#include "view.hpp"

/// Inputs of attention and expected outputs, for all backends.
namespace lockstep_test::attention {
using lockstep::HostSpace;
using lockstep::Index;
using lockstep::kernel::DropoutMask;
using lockstep::kernel::SequenceLayout;

/// One side of attention. Padding, if any, must contain NaN.
struct Side {
  std::vector<std::int32_t> lengths;
  std::vector<Index> offsets, positions;
  Index longest;
  bool ragged;

  /// Lengths are full, empty, one and about a third, in turn, beginning with the `first` of these.
  Side(Index rows, Index length, std::size_t first, bool is_ragged) : offsets{0}, longest(length), ragged(is_ragged) {
    Index const some[] = {length, 0, std::min<Index>(1, length), (length + 2) / 3};
    for (Index r = 0; r < rows; ++r) {
      lengths.push_back(static_cast<std::int32_t>(some[(first + static_cast<std::size_t>(r)) % 4]));
      offsets.push_back(offsets.back() + lengths.back());
      positions.push_back(900 + r);
    }
  }
  [[nodiscard]] Index rows() const { return std::ssize(lengths); }
  [[nodiscard]] Index slots() const { return ragged ? offsets.back() : rows() * longest; }
  [[nodiscard]] Index start(Index row) const { return ragged ? offsets[static_cast<std::size_t>(row)] : row * longest; }
  [[nodiscard]] Index tokens(Index row) const { return lengths[static_cast<std::size_t>(row)]; }
  [[nodiscard]] Index end(Index row) const { return ragged ? start(row) + tokens(row) : start(row) + longest; }
  [[nodiscard]] SequenceLayout<HostSpace> layout() const {
    return ragged
               ? SequenceLayout<HostSpace>::ragged(slots(), longest, view(offsets, rows() + 1), view(positions, rows()))
               : SequenceLayout<HostSpace>::padded(longest, view(lengths, rows()), view(positions, rows()));
  }
};

struct Options {
  Index rows, queries, keys, heads, head_width;
  double dropout = 0;
  bool causal = false, biased = false, ragged = false;
};

template <class T>
struct Batch {
  Options options;
  Side queries, keys;
  DropoutMask mask;
  std::vector<T> query, key, value, dout, bias;
  Index heads_per_key_head = 1;  // query heads per head of keys and values

  explicit Batch(Options const& o)
      : options(o),
        queries(o.rows, o.queries, 0, o.ragged),
        keys(o.rows, o.keys, o.queries == o.keys ? 0 : 3, o.ragged),
        mask(DropoutMask::of(21, o.dropout)),
        query(values<T>(queries.slots() * width(), 1, 2)),
        key(values<T>(keys.slots() * width(), 2, 2)),
        value(values<T>(keys.slots() * width(), 3)),
        dout(values<T>(queries.slots() * width(), 4)) {
    if (o.biased) bias = values<T>(o.heads * distances(), 5);
    spoil_padding(queries, {&query, &dout});
    spoil_padding(keys, {&key, &value});
  }
  [[nodiscard]] Index width() const { return options.heads * options.head_width; }
  [[nodiscard]] Index distances() const { return std::max<Index>(0, options.queries + options.keys - 1); }
  [[nodiscard]] double scale() const { return 1 / std::sqrt(static_cast<double>(options.head_width)); }

 private:
  void spoil_padding(Side const& side, std::initializer_list<std::vector<T>*> tensors) {
    for (Index r = 0; r < side.rows(); ++r)
      for (Index i = (side.start(r) + side.tokens(r)) * width(); i < side.end(r) * width(); ++i)
        for (auto* x : tensors) (*x)[static_cast<std::size_t>(i)] = std::numeric_limits<T>::quiet_NaN();
  }
};

/// A number and a bound on the error of its computation in rounded arithmetic.
struct Bounded {
  double value = 0, error = 0;
};

/// The definition in double, one head of one row, with a running error bound for arithmetic of unit roundoff u: a
/// product changes by |a| db + |b| da, a sum of n terms by u n sum |terms| in addition to its terms' errors.
template <class T>
class Reference {
 public:
  Reference(Batch<T> const& batch, Index row, Index head)
      : b(batch),
        r(row),
        h(head),
        n(batch.queries.tokens(row)),
        m(batch.keys.tokens(row)),
        d(batch.options.head_width) {
    for (Index i = 0; i < n; ++i) probabilities_of(i);
    for (Index i = 0; i < n; ++i)
      for (Index c = 0; c < d; ++c) out.push_back(out_at(i, c));
    for (Index i = 0; i < n; ++i) score_gradients_of(i);
  }
  [[nodiscard]] Bounded dquery(Index i, Index c) const {
    return sum(
        m, [&](Index j) { return product(ds[at(i, j)], key(b.key, j, c)); }, b.scale());
  }
  [[nodiscard]] Bounded dkey(Index j, Index c) const {
    return sum(
        n, [&](Index i) { return product(ds[at(i, j)], query(b.query, i, c)); }, b.scale());
  }
  [[nodiscard]] Bounded dvalue(Index j, Index c) const {
    return sum(n, [&](Index i) { return product(dropped(i, j), query(b.dout, i, c)); });
  }
  /// This row's part of the gradient of the bias for j - i = distance.
  [[nodiscard]] Bounded dbias(Index distance) const {
    Index const first = std::max<Index>(0, -distance), count = std::min(n, m - distance) - first;
    return sum(std::max<Index>(0, count), [&](Index k) { return ds[at(first + k, first + k + distance)]; });
  }
  std::vector<Bounded> out;

 private:
  [[nodiscard]] std::size_t at(Index i, Index j) const { return static_cast<std::size_t>(i * m + j); }
  [[nodiscard]] double query(std::vector<T> const& x, Index t, Index c) const { return in(b.queries, x, t, c); }
  [[nodiscard]] double key(std::vector<T> const& x, Index t, Index c) const { return in(b.keys, x, t, c); }
  [[nodiscard]] double in(Side const& side, std::vector<T> const& x, Index t, Index c) const {
    return static_cast<double>(x[static_cast<std::size_t>((side.start(r) + t) * b.width() + h * d + c)]);
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
    auto const element = (h * n + i) * ((m + 7) / 8 * 8) + j;
    return b.mask.keeps(static_cast<std::uint64_t>(b.queries.positions[static_cast<std::size_t>(r)]),
                        static_cast<std::uint64_t>(element))
               ? b.mask.scale()
               : 0;
  }
  [[nodiscard]] Bounded dropped(Index i, Index j) const {
    auto const p = product(probabilities[at(i, j)], factor(i, j));
    return {p.value, p.error + u * std::abs(p.value)};  // the scale is rounded, too
  }
  [[nodiscard]] Index met(Index i) const { return b.options.causal ? std::min(m, i + 1) : m; }

  void probabilities_of(Index i) {
    std::vector<Bounded> s;
    for (Index j = 0; j < met(i); ++j) {
      s.push_back(sum(
          d,
          [&](Index c) {
            return product({query(b.query, i, c), 0}, key(b.key, j, c));
          },
          b.scale()));
      if (b.bias.empty()) continue;
      auto& score = s.back();
      score.value +=
          static_cast<double>(b.bias[static_cast<std::size_t>(h * b.distances() + j - i + b.options.queries - 1)]);
      score.error += u * std::abs(score.value);
    }
    double most = s.empty() ? 0 : s[0].value, total = 0, moved = 0;
    for (auto const& x : s) most = std::max(most, x.value);
    for (auto const& x : s) total += std::exp(x.value - most);
    double const log_sum = most + std::log(total);
    // The error of an exponential is its argument's, the rounding of the subtraction (of the largest or, in backward,
    // of the logarithm of the sum) and 2 units (4 u) of its own. The error of the sum is the mean of these over its
    // terms, and its additions, n / 16 + 16. The logarithm rounds once more, and so does the division by the sum.
    std::vector<double> each;
    for (auto const& x : s) each.push_back(x.error + u * (std::max(most - x.value, log_sum - x.value) + 6));
    for (std::size_t j = 0; j < s.size(); ++j) moved += std::exp(s[j].value - log_sum) * each[j];
    double const sum_error = moved + u * (static_cast<double>(m) / 16 + 19 + 2 * std::abs(log_sum));
    for (std::size_t j = 0; j < s.size(); ++j) {
      double const p = std::exp(s[j].value - log_sum);
      probabilities.push_back({p, p * (each[j] + sum_error) * 1.01});  // 1.01: exp(x) - 1 for small x
    }
    probabilities.resize(at(i + 1, 0));
  }
  [[nodiscard]] Bounded out_at(Index i, Index c) const {
    return sum(m, [&](Index j) { return product(dropped(i, j), key(b.value, j, c)); });
  }
  void score_gradients_of(Index i) {
    auto const mean =
        sum(d, [&](Index c) { return product(out[static_cast<std::size_t>(i * d + c)], query(b.dout, i, c)); });
    for (Index j = 0; j < m; ++j) {
      auto const dp = sum(d, [&](Index c) { return product({query(b.dout, i, c), 0}, key(b.value, j, c)); });
      auto const drop = product(dp, factor(i, j));
      auto const p = probabilities[at(i, j)];
      double const difference = drop.value - mean.value;
      double const error = drop.error + mean.error + u * (2 * std::abs(drop.value) + std::abs(difference));
      ds.push_back({p.value * difference,
                    p.error * std::abs(difference) + (p.value + p.error) * error + u * std::abs(p.value * difference)});
    }
  }

  // Double is checked against double: both round, and the reference is less careful.
  static constexpr double u = std::numeric_limits<T>::epsilon() / 2 * (sizeof(T) == 8 ? 4 : 1);
  Batch<T> const& b;
  Index r, h, n, m, d;  // row, head, queries, keys, head width
  std::vector<Bounded> probabilities, ds;
};

template <class T>
struct Result {
  std::vector<T> out, dquery, dkey, dvalue, dbias;
  bool operator==(Result const&) const = default;
};

struct Verdict {
  bool agree = true, padding_is_zero = true;
  double closest = 0;  ///< the largest error as a share of its bound
};

/// Whether a result equals the definition, with its gradients added to `before`.
template <class T>
[[nodiscard]] Verdict judge(Batch<T> const& batch, Result<T> const& got, T before = T{0}) {
  Verdict verdict;
  auto const near = [&](T x, Bounded expected, T start) {
    double const error = std::abs(static_cast<double>(x) - static_cast<double>(start) - expected.value);
    double const bound = expected.error + std::numeric_limits<T>::epsilon() * 4 * std::abs(static_cast<double>(start));
    if (bound > 0) verdict.closest = std::max(verdict.closest, error / bound);
    verdict.agree = verdict.agree && error <= bound;
  };
  auto const heads = batch.options.heads, d = batch.options.head_width;
  std::vector<Bounded> dbias(got.dbias.size());
  std::vector<double> magnitudes(got.dbias.size());
  for (Index r = 0; r < batch.options.rows; ++r)
    for (Index h = 0; h < heads; ++h) {
      Reference<T> const reference(batch, r, h);
      auto const each = [&](Side const& side, auto const& token, auto const& padding) {
        for (Index t = 0; t < side.end(r) - side.start(r); ++t)
          for (Index c = 0; c < d; ++c) {
            auto const i = static_cast<std::size_t>((side.start(r) + t) * batch.width() + h * d + c);
            if (t < side.tokens(r))
              token(t, c, i);
            else
              verdict.padding_is_zero = verdict.padding_is_zero && padding(i);
          }
      };
      each(
          batch.queries,
          [&](Index t, Index c, std::size_t i) {
            near(got.out[i], reference.out[static_cast<std::size_t>(t * d + c)], T{0});
            near(got.dquery[i], reference.dquery(t, c), before);
          },
          [&](std::size_t i) { return got.out[i] == 0 && got.dquery[i] == before; });
      each(
          batch.keys,
          [&](Index t, Index c, std::size_t i) {
            near(got.dkey[i], reference.dkey(t, c), before);
            near(got.dvalue[i], reference.dvalue(t, c), before);
          },
          [&](std::size_t i) { return got.dkey[i] == before && got.dvalue[i] == before; });
      if (!got.dbias.empty())
        for (Index k = 0; k < batch.distances(); ++k) {
          auto const i = static_cast<std::size_t>(h * batch.distances() + k);
          auto const part = reference.dbias(k - batch.options.queries + 1);
          dbias[i].value += part.value;
          dbias[i].error += part.error;
          magnitudes[i] += std::abs(part.value);
        }
    }
  for (std::size_t i = 0; i < dbias.size(); ++i) {
    // the additions of the rows' parts
    dbias[i].error += static_cast<double>(batch.options.rows) * std::numeric_limits<T>::epsilon() * magnitudes[i];
    near(got.dbias[i], dbias[i], before);
  }
  return verdict;
}

}  // namespace lockstep_test::attention
