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

  /// Computes a block of rows with fewer classes than lanes. Transposes the block, so that a lane holds a row.
  [[gnu::always_inline]] void transposed_rows(Index first, Index rows) const noexcept {
    auto const classes = terms.classes;
    Scalar z[(LanesOf<Scalar>::count - 1) * transposed_count];  // [classes, transposed_count]
    Scalar maximum[transposed_count], at_label[transposed_count], total[transposed_count], logs[transposed_count],
        spread[transposed_count];
    for (Index c = 0; c < classes; ++c)
      for (Index i = 0; i < rows; ++i) z[c * transposed_count + i] = logits[(first + i) * classes + c];
    for (Index i = 0; i < rows; ++i) maximum[i] = z[i];
    for (Index c = 1; c < classes; ++c)
      for (Index i = 0; i < rows; ++i)
        maximum[i] = z[c * transposed_count + i] > maximum[i] ? z[c * transposed_count + i] : maximum[i];
    Index own[transposed_count];  // label, or -1 for none
    for (Index i = 0; i < rows; ++i) {
      own[i] = counts(first + i) ? label(first + i) : -1;
      at_label[i] = own[i] >= 0 ? z[own[i] * transposed_count + i] - maximum[i] : Scalar{0};
      total[i] = spread[i] = 0;
    }
    for (Index c = 0; c < classes; ++c)
      for (Index i = 0; i < rows; ++i) {
        Scalar const less = z[c * transposed_count + i] - maximum[i];
        if (terms.each != 0) spread[i] += class_weight(c) * less;
        z[c * transposed_count + i] = exp(less);
        total[i] += z[c * transposed_count + i];
      }
    for (Index i = 0; i < rows; ++i) logs[i] = log(total[i]);
    for (Index i = 0; i < rows; ++i) {
      auto const r = first + i;
      losses[r] = weights[r] = 0;
      if (own[i] < 0) continue;
      auto const by = factor(r);
      weights[r] = terms.weight(own[i]);
      losses[r] = by * terms.loss(own[i], static_cast<double>(logs[i]), static_cast<double>(at_label[i]),
                                  static_cast<double>(spread[i]));
      total[i] = static_cast<Scalar>(by * terms.total(own[i])) / total[i];
      spread[i] = static_cast<Scalar>(by * terms.each);
      at_label[i] = static_cast<Scalar>(by * terms.at_label(own[i]));
    }
    if (!gradient) return;
    for (Index c = 0; c < classes; ++c)
      for (Index i = 0; i < rows; ++i) z[c * transposed_count + i] *= total[i];
    for (Index c = 0; terms.each != 0 && c < classes; ++c)
      for (Index i = 0; i < rows; ++i) z[c * transposed_count + i] -= spread[i] * class_weight(c);
    for (Index i = 0; i < rows; ++i)
      if (own[i] >= 0) z[own[i] * transposed_count + i] -= at_label[i];
    write_transposed(z, own, first, rows);
  }

  /// Writes the gradient of a block of rows. One version for all instruction sets: rows are too short for vectors.
  [[gnu::noinline]] void write_transposed(Scalar const* z, Index const* own, Index first, Index rows) const noexcept {
    auto const classes = terms.classes;
    auto* dx = gradient + first * classes;
    for (Index i = 0; i < rows; ++i, dx += classes) {
      if (own[i] < 0) {
        if (write == Write::overwrite) std::fill_n(dx, classes, Scalar{0});
      } else if (write == Write::overwrite) {
        for (Index c = 0; c < classes; ++c) dx[c] = z[c * transposed_count + i];
      } else {
        for (Index c = 0; c < classes; ++c) dx[c] += z[c * transposed_count + i];
      }
    }
  }
};

}}}  // namespace lockstep::kernel::detail
