// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>

#include <lockstep/kernel/detail/exp.hpp>
#include <lockstep/kernel/detail/lanes.hpp>
#include <lockstep/kernel/detail/log.hpp>
#include <lockstep/kernel/loss/detail/cross_entropy_terms.hpp>
#include <lockstep/kernel/sequence_layout.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Arguments of both ways to compute rows of a cross entropy. Use it inside with_best_instructions.
template <class Scalar, class Label>
struct CrossEntropyRows {
  SequenceLayout<HostSpace> layout;
  CrossEntropyTerms terms;
  Scalar const* logits;  // [slots, classes]
  Label const* labels;
  double *losses, *weights;
  Scalar* gradient;  // may be the logits, or null
  Write write;
  float const* factors;  // of rows, or null

  /// Computes rows [begin, end).
  template <std::size_t bytes>
  [[gnu::always_inline]] void run(Vectors<bytes> vectors, Index begin, Index end) const noexcept {
    if (terms.classes < LanesOf<Scalar>::count) {
      for (; begin < end; begin += transposed_count) transposed_rows(begin, std::min(transposed_count, end - begin));
    } else {
      for (; begin < end; ++begin) row(vectors, begin);
    }
  }

 private:
  static constexpr Index block = 256, transposed_count = 64, line = 64 / Index{sizeof(Scalar)};

  [[gnu::always_inline]] bool counts(Index r) const noexcept { return layout.is_token(r) && label(r) != terms.ignored; }
  [[gnu::always_inline]] Index label(Index r) const noexcept { return static_cast<Index>(labels[r]); }
  [[gnu::always_inline]] double factor(Index r) const noexcept { return factors ? static_cast<double>(factors[r]) : 1; }
  [[gnu::always_inline]] Scalar class_weight(Index c) const noexcept {
    return terms.class_weights ? static_cast<Scalar>(terms.class_weights[c]) : Scalar{1};
  }

  [[gnu::always_inline]] void ignore_row(Index r) const noexcept {
    losses[r] = weights[r] = 0;
    if (!gradient || write == Write::add) return;
    for (Index c = 0; c < terms.classes; ++c) gradient[r * terms.classes + c] = Scalar{0};
  }

  /// Computes one row of many classes. Sums are of type Scalar within a block and in double across blocks: with 2^15
  /// classes, too, the error is that of one block.
  template <std::size_t bytes>
  [[gnu::always_inline]] void row(Vectors<bytes> vectors, Index r) const noexcept {
    if (!counts(r)) return ignore_row(r);
    auto const y = label(r), classes = terms.classes;
    auto const* const x = logits + r * classes;
    auto* const dx = gradient ? gradient + r * classes : nullptr;
    Scalar const at_label = x[y], maximum = largest(vectors, x, classes);
    Scalar exponentials[block];
    double total = 0, spread = 0;
    for (Index c = 0; c < classes; c += block) {
      Index const here = std::min(block, classes - c);
      if (terms.each != 0) {
        for (Index i = 0; i < here; ++i) exponentials[i] = class_weight(c + i) * (x[c + i] - maximum);
        spread += static_cast<double>(sum(vectors, exponentials, here));
      }
      Scalar* const to = dx && write == Write::overwrite ? dx + c : exponentials;
      // Arithmetic limits this loop, and memory limits the start of the next row.
      if (r + 1 < layout.slots)
        for (Index i = 0; i < here; i += line) {
          __builtin_prefetch(x + classes + c + i, 0, 2);
          if (dx) __builtin_prefetch(dx + classes + c + i, 1, 2);
        }
      for (Index i = 0; i < here; ++i) to[i] = exp(x[c + i] - maximum);
      total += static_cast<double>(sum(vectors, to, here));
    }
    auto const by = factor(r);
    weights[r] = terms.weight(y);
    losses[r] =
        by * terms.loss(y, std::log(total), static_cast<double>(at_label) - static_cast<double>(maximum), spread);
    if (!dx) return;
    auto const scale = static_cast<Scalar>(by * terms.total(y) / total);
    if (write == Write::overwrite) {
      for (Index c = 0; c < classes; ++c) dx[c] *= scale;
    } else {
      for (Index c = 0; c < classes; ++c) dx[c] += exp(x[c] - maximum) * scale;
    }
    if (terms.each != 0)
      for (Index c = 0; c < classes; ++c) dx[c] -= static_cast<Scalar>(by) * terms.template share<Scalar>(c);
    dx[y] -= static_cast<Scalar>(by * terms.at_label(y));
  }

  /// Rows with fewer classes than lanes, transposed, so that a lane holds a row.
  struct Transposed {
    Index first, rows, width;  // width: rows, rounded up to full lanes; the loops over it have no remainder
    alignas(64) Scalar z[(LanesOf<Scalar>::count - 1) * transposed_count];  // [classes, transposed_count]
    Index own[transposed_count];                                            // label, or -1 for none
    alignas(64) Scalar at_label[transposed_count], total[transposed_count], logs[transposed_count],
        spread[transposed_count];
  };

  /// Computes a block of rows with fewer classes than lanes.
  [[gnu::always_inline]] void transposed_rows(Index first, Index rows) const noexcept {
    constexpr Index lanes = LanesOf<Scalar>::count;
    auto const classes = terms.classes;
    Transposed t;
    t.first = first;
    t.rows = rows;
    t.width = (rows + lanes - 1) / lanes * lanes;
    read_transposed(t);
    auto const width = t.width;
    alignas(64) Scalar maximum[transposed_count];
    for (Index i = 0; i < width; ++i) maximum[i] = t.z[i];
    for (Index c = 1; c < classes; ++c)
      for (Index i = 0; i < width; ++i)
        maximum[i] = t.z[c * transposed_count + i] > maximum[i] ? t.z[c * transposed_count + i] : maximum[i];
    for (Index i = 0; i < width; ++i) {
      t.at_label[i] -= maximum[i];
      t.total[i] = t.spread[i] = 0;
    }
    for (Index c = 0; c < classes; ++c) {
      if (terms.each != 0) {
        auto const weight = class_weight(c);
        for (Index i = 0; i < width; ++i) t.spread[i] += weight * (t.z[c * transposed_count + i] - maximum[i]);
      }
      for (Index i = 0; i < width; ++i) {
        t.z[c * transposed_count + i] = exp(t.z[c * transposed_count + i] - maximum[i]);
        t.total[i] += t.z[c * transposed_count + i];
      }
    }
    for (Index i = 0; i < width; ++i) t.logs[i] = log(t.total[i]);
    write_losses(t);
    if (!gradient) return;
    for (Index c = 0; c < classes; ++c) {
      for (Index i = 0; i < width; ++i) t.z[c * transposed_count + i] *= t.total[i];
      if (terms.each == 0) continue;
      auto const weight = class_weight(c);
      for (Index i = 0; i < width; ++i) t.z[c * transposed_count + i] -= t.spread[i] * weight;
    }
    write_gradient(t);
  }

  // One version of these functions serves all instruction sets: nothing in them is worth vectors.

  /// Reads logits and labels of a block of rows. Rows up to `width` are zero and have no label.
  [[gnu::noinline]] void read_transposed(Transposed& t) const noexcept {
    auto const classes = terms.classes;
    auto const* x = logits + t.first * classes;
    for (Index i = 0; i < t.rows; ++i, x += classes) {
      for (Index c = 0; c < classes; ++c) t.z[c * transposed_count + i] = x[c];
      t.own[i] = counts(t.first + i) ? label(t.first + i) : -1;
      t.at_label[i] = t.own[i] >= 0 ? x[t.own[i]] : Scalar{0};
    }
    for (Index i = t.rows; i < t.width; ++i) {
      for (Index c = 0; c < classes; ++c) t.z[c * transposed_count + i] = 0;
      t.at_label[i] = 0;
    }
  }

  /// Writes losses and weights. Leaves the factors of the gradient in total, spread and at_label.
  [[gnu::noinline]] void write_losses(Transposed& t) const noexcept {
    for (Index i = 0; i < t.rows; ++i) {
      auto const r = t.first + i, own = t.own[i];
      losses[r] = weights[r] = 0;
      if (own < 0) continue;
      auto const by = factor(r);
      weights[r] = terms.weight(own);
      losses[r] = by * terms.loss(own, static_cast<double>(t.logs[i]), static_cast<double>(t.at_label[i]),
                                  static_cast<double>(t.spread[i]));
      t.total[i] = static_cast<Scalar>(by * terms.total(own)) / t.total[i];
      t.spread[i] = static_cast<Scalar>(by * terms.each);
      t.at_label[i] = static_cast<Scalar>(by * terms.at_label(own));
    }
  }

  /// Writes the gradient of a block of rows.
  [[gnu::noinline]] void write_gradient(Transposed& t) const noexcept {
    auto const classes = terms.classes;
    auto* dx = gradient + t.first * classes;
    for (Index i = 0; i < t.rows; ++i, dx += classes) {
      if (t.own[i] < 0) {
        if (write == Write::overwrite) std::fill_n(dx, classes, Scalar{0});
        continue;
      }
      t.z[t.own[i] * transposed_count + i] -= t.at_label[i];
      for (Index c = 0; c < classes; ++c) {
        auto const z = t.z[c * transposed_count + i];
        dx[c] = write == Write::overwrite ? z : dx[c] + z;
      }
    }
  }
};

}}}  // namespace lockstep::kernel::detail
