// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>

#include <lockstep/core/index.hpp>
#include <lockstep/kernel/detail/drop.hpp>
#include <lockstep/kernel/detail/exp.hpp>
#include <lockstep/kernel/detail/lanes.hpp>
#include <lockstep/kernel/dropout_mask.hpp>

// All of these are to be called inside with_best_instructions.
namespace lockstep::inline LOCKSTEP_ABI::kernel::detail {

/// Rows end where they end, but are worked on in whole vectors: they have room for `whole(count)` elements.
template <class T>
[[nodiscard]] constexpr Index whole(Index count) noexcept {
  return (count + LanesOf<T>::count - 1) / LanesOf<T>::count * LanesOf<T>::count;
}

/// What follows the row's end in its last vector becomes `value`: a choice per lane, because ends vary from row to row
/// and no processor foresees a loop's.
template <class T>
[[gnu::always_inline]] inline void fill_last(T* x, Index count, T value) noexcept {
  constexpr Index lanes = LanesOf<T>::count;
  Index const used = count % lanes;
  if (used == 0) return;
  T* const last = x + count - used;
  for (Index lane = 0; lane < lanes; ++lane) last[lane] = lane < used ? last[lane] : value;
}

/// Zeros from the end of the last vector of `count` elements to that of `end`.
template <class T>
[[gnu::always_inline]] inline void clear_behind(T* x, Index count, Index end) noexcept {
  constexpr Lanes<T, 64> zeros{};
  for (Index i = whole<T>(count); i < end; i += LanesOf<T>::count) store(x + i, zeros);
}

/// x[i] += bias[i] unless that is null.
template <class T>
[[gnu::always_inline]] inline void add_bias(T* x, T const* bias, Index count) noexcept {
  if (bias)
    for (Index i = 0; i < count; ++i) x[i] += bias[i];
}

/// Of a query's scores, to which its bias is added: the largest; minus infinity of none, which also fills the last
/// vector.
template <std::size_t bytes, class T>
[[gnu::always_inline]] inline T largest_score(Vectors<bytes> vectors, T* row, T const* bias, Index count) noexcept {
  constexpr T none = -std::numeric_limits<T>::infinity();
  add_bias(row, bias, count);
  fill_last(row, count, none);
  return largest(vectors, row, whole<T>(count));
}

/// Scores become exponentials of what they exceed the largest by, zeros in the last vector; returns their sum. A query
/// that meets no key attends to nothing.
template <std::size_t bytes, class T>
[[gnu::always_inline]] inline T exponentials(Vectors<bytes> vectors, T* row, T most, Index count) noexcept {
  if (count == 0) return 1;
  Index const all = whole<T>(count);
  for (Index j = 0; j < all; ++j) row[j] = exp(row[j] - most);
  return sum(vectors, row, all);
}

/// p: scores become probabilities as the values met them, after dropout; ds: the gradient of those becomes that of the
/// scores, ds = p (drop(dp) - sum over j of p drop(dp)), where the sum, `mean`, equals dout . out. Zeros
/// fill the last vector.
template <class T>
[[gnu::always_inline]] inline void score_gradients_row(T* p, T* ds, T const* bias, T log_sum, T mean, Index count,
                                                       DropoutMask mask, std::uint64_t position,
                                                       std::uint64_t element) noexcept {
  add_bias(p, bias, count);
  Index const all = whole<T>(count);
  for (Index j = 0; j < all; ++j) p[j] = exp(p[j] - log_sum);
  if (!mask.active()) {
    for (Index j = 0; j < all; ++j) ds[j] = p[j] * (ds[j] - mean);
    fill_last(p, count, T{0});
    fill_last(ds, count, T{0});
    return;
  }
  auto const keep = static_cast<T>(mask.scale());
  auto const dropped = static_cast<std::uint16_t>(mask.dropped);
  for_dropout_bits(mask, position, element, all, [=](Index done, Index here, std::uint16_t const* bits) {
    for (Index j = 0; j < here; ++j) {
      T const factor = bits[j] >= dropped ? keep : T{0}, x = p[done + j];
      ds[done + j] = x * (ds[done + j] * factor - mean);
      p[done + j] = x * factor;
    }
  });
  fill_last(p, count, T{0});
  fill_last(ds, count, T{0});
}

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel::detail
