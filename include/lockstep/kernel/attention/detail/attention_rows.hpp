// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>

#include <lockstep/core/index.hpp>
#include <lockstep/kernel/detail/apply_dropout.hpp>
#include <lockstep/kernel/detail/exp.hpp>
#include <lockstep/kernel/detail/lanes.hpp>
#include <lockstep/kernel/dropout_mask.hpp>

// Call all of these inside with_best_instructions.
namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Returns the elements that a row of `count` occupies in whole vectors. Rows are processed in whole vectors and have
/// room for them.
template <class Scalar>
[[nodiscard]] constexpr Index whole(Index count) noexcept {
  return (count + LanesOf<Scalar>::count - 1) / LanesOf<Scalar>::count * LanesOf<Scalar>::count;
}

/// Sets the elements after the row's end in its last vector to `value`. Selects per lane, because ends vary between
/// rows and branch prediction would fail.
template <class Scalar>
[[gnu::always_inline]] inline void fill_last(Scalar* x, Index count, Scalar value) noexcept {
  constexpr Index lanes = LanesOf<Scalar>::count;
  Index const used = count % lanes;
  if (used == 0) return;
  Scalar* const last = x + count - used;
  for (Index lane = 0; lane < lanes; ++lane) last[lane] = lane < used ? last[lane] : value;
}

/// Sets elements to zero, from the end of the last vector of `count` elements up to the last vector of `end`.
template <class Scalar>
[[gnu::always_inline]] inline void clear_after(Scalar* x, Index count, Index end) noexcept {
  constexpr Lanes<Scalar, 64> zeros{};
  for (Index i = whole<Scalar>(count); i < end; i += LanesOf<Scalar>::count) store(x + i, zeros);
}

/// Computes x[i] += bias[i], unless `bias` is null.
template <class Scalar>
[[gnu::always_inline]] inline void add_bias(Scalar* x, Scalar const* bias, Index count) noexcept {
  if (bias)
    for (Index i = 0; i < count; ++i) x[i] += bias[i];
}

/// Adds the bias to a query's scores and returns the largest, or minus infinity if there are none. Fills the rest of
/// the last vector with minus infinity.
template <std::size_t bytes, class Scalar>
[[gnu::always_inline]] inline Scalar largest_score(Vectors<bytes> vectors, Scalar* row, Scalar const* bias,
                                                   Index count) noexcept {
  constexpr Scalar none = -std::numeric_limits<Scalar>::infinity();
  add_bias(row, bias, count);
  fill_last(row, count, none);
  return largest(vectors, row, whole<Scalar>(count));
}

/// Replaces scores by exponentials of their differences from the largest, zero in the rest of the last vector; returns
/// their sum. A query without keys attends to nothing.
template <std::size_t bytes, class Scalar>
[[gnu::always_inline]] inline Scalar exponentials(Vectors<bytes> vectors, Scalar* row, Scalar maximum,
                                                  Index count) noexcept {
  if (count == 0) return 1;
  Index const all = whole<Scalar>(count);
  for (Index j = 0; j < all; ++j) row[j] = exp(row[j] - maximum);
  return sum(vectors, row, all);
}

/// Replaces scores p by the probabilities after dropout that were multiplied by the values. Replaces ds, the gradient
/// of those, by the gradient of the scores: ds = p (drop(dp) - sum over j of p drop(dp)). The sum, `mean`, equals dout
/// . out. Fills the rest of the last vector with zeros.
template <class Scalar>
[[gnu::always_inline]] inline void score_gradients_row(Scalar* p, Scalar* ds, Scalar const* bias, Scalar log_sum,
                                                       Scalar mean, Index count, DropoutMask mask,
                                                       std::uint64_t position, std::uint64_t element) noexcept {
  add_bias(p, bias, count);
  Index const all = whole<Scalar>(count);
  for (Index j = 0; j < all; ++j) p[j] = exp(p[j] - log_sum);
  if (!mask.active()) {
    for (Index j = 0; j < all; ++j) ds[j] = p[j] * (ds[j] - mean);
    fill_last(p, count, Scalar{0});
    fill_last(ds, count, Scalar{0});
    return;
  }
  auto const keep = static_cast<Scalar>(mask.scale());
  auto const dropped = static_cast<std::uint16_t>(mask.dropped);
  for_dropout_bits(mask, position, element, all, [=](Index done, Index here, std::uint16_t const* bits) {
    for (Index j = 0; j < here; ++j) {
      Scalar const factor = bits[j] >= dropped ? keep : Scalar{0}, x = p[done + j];
      ds[done + j] = x * (ds[done + j] * factor - mean);
      p[done + j] = x * factor;
    }
  });
  fill_last(p, count, Scalar{0});
  fill_last(ds, count, Scalar{0});
}

}}}  // namespace lockstep::kernel::detail
