// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <utility>

#include <lockstep/core/index.hpp>
#include <lockstep/kernel/detail/lanes.hpp>
#include <lockstep/kernel/gemm/detail/strided.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

#if defined(LOCKSTEP_HAS_SHUFFLE)
/// One step of a transposition by halves, for two rows that are `distance` apart. Each row keeps its own half of the
/// columns and exchanges the other half.
template <int distance, class Vector, int... column>
[[gnu::always_inline]] inline void exchange(Vector& upper, Vector& lower,
                                            std::integer_sequence<int, column...>) noexcept {
  constexpr int lanes = sizeof...(column);
  Vector const above = upper, below = lower;
  upper = __builtin_shufflevector(above, below, (column & distance ? column - distance + lanes : column)...);
  lower = __builtin_shufflevector(above, below, (column & distance ? column + lanes : column + distance)...);
}

template <int distance, std::size_t lanes, class Vector>
[[gnu::always_inline]] inline void exchange_all(Vector (&rows)[lanes]) noexcept {
  for (std::size_t i = 0; i < lanes; ++i)
    if ((i & distance) == 0)
      exchange<distance>(rows[i], rows[i + distance], std::make_integer_sequence<int, int{lanes}>{});
  if constexpr (2 * distance < lanes) exchange_all<2 * distance>(rows);
}
#endif

/// Computes to[p * to_row + x] = from[x * from_row + p] for p and x below the lanes of a vector.
template <class Scalar, std::size_t bytes>
[[gnu::always_inline]] inline void transpose_square(Scalar const* from, Index from_row, Scalar* to,
                                                    Index to_row) noexcept {
  constexpr std::size_t lanes = bytes / sizeof(Scalar);
#if defined(LOCKSTEP_HAS_SHUFFLE)
  typedef Scalar Vector __attribute__((vector_size(bytes)));
  Vector rows[lanes];
  for (std::size_t x = 0; x < lanes; ++x)
    __builtin_memcpy(&rows[x], from + static_cast<Index>(x) * from_row, sizeof(Vector));
  exchange_all<1>(rows);
  for (std::size_t p = 0; p < lanes; ++p)
    __builtin_memcpy(to + static_cast<Index>(p) * to_row, &rows[p], sizeof(Vector));
#else
  for (Index p = 0; p < static_cast<Index>(lanes); ++p)
    for (Index x = 0; x < static_cast<Index>(lanes); ++x) to[p * to_row + x] = from[x * from_row + p];
#endif
}

/// Packs one panel, of whose `width` columns only `valid` exist.
template <class Scalar, std::size_t bytes, Index width>
[[gnu::always_inline]] inline void pack_panel(Strided<Scalar const> b, Index depth, Index valid, Scalar* out) noexcept {
  constexpr Index lanes = bytes / sizeof(Scalar);
  Index const squares = b.row == 1 ? valid / lanes * lanes : 0, steps = depth / lanes * lanes;
  for (Index p = 0; p < steps; p += lanes)
    for (Index x = 0; x < squares; x += lanes)
      transpose_square<Scalar, bytes>(b.data + x * b.column + p, b.column, out + p * width + x, width);
  for (Index p = 0; p < depth; ++p) {
    auto* const to = out + p * width;
    auto const* const from = b.data + p * b.row;
    if (b.column == 1 && valid == width) {
      __builtin_memcpy(to, from, sizeof(Scalar) * width);
      continue;
    }
    for (Index x = p < steps ? squares : 0; x < valid; ++x) to[x] = from[x * b.column];
    for (Index x = valid; x < width; ++x) to[x] = 0;
  }
}

/// Copies [depth, columns] of B into panels of `width` columns. The columns of a step are contiguous, with zeros after
/// the last.
template <class Scalar, std::size_t bytes, Index width>
[[gnu::always_inline]] inline void pack_panels(Strided<Scalar const> b, Index depth, Index columns,
                                               Scalar* out) noexcept {
  for (Index j = 0; j < columns; j += width)
    pack_panel<Scalar, bytes, width>(b.at(0, j), depth, columns - j < width ? columns - j : width, out + j * depth);
}

}}}  // namespace lockstep::kernel::detail
