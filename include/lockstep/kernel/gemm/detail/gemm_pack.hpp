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

/// Transposes 4 x 4 lanes of four adjacent rows in each 16 bytes. Takes one instruction per row and step, whereas
/// exchanges of single lanes take two.
template <class Vector, int... column>
[[gnu::always_inline]] inline void transpose_fours(Vector& first, Vector& second, Vector& third, Vector& fourth,
                                                   std::integer_sequence<int, column...> all) noexcept {
  constexpr int lanes = sizeof...(column);
  Vector const a = first, b = second, c = third, d = fourth;
  first = __builtin_shufflevector(a, b, (column / 4 * 4 + column % 4 / 2 + column % 2 * lanes)...);
  third = __builtin_shufflevector(a, b, (column / 4 * 4 + column % 4 / 2 + column % 2 * lanes + 2)...);
  second = __builtin_shufflevector(c, d, (column / 4 * 4 + column % 4 / 2 + column % 2 * lanes)...);
  fourth = __builtin_shufflevector(c, d, (column / 4 * 4 + column % 4 / 2 + column % 2 * lanes + 2)...);
  exchange<2>(first, second, all);
  exchange<2>(third, fourth, all);
}

template <int distance, class Vector, int... row>
[[gnu::always_inline]] inline void exchange_all(Vector (&rows)[sizeof...(row)],
                                                std::integer_sequence<int, row...> all) noexcept {
  if constexpr (distance < static_cast<int>(sizeof...(row))) {
    ((row & distance ? void() : exchange<distance>(rows[row], rows[row | distance], all)), ...);
    exchange_all<2 * distance>(rows, all);
  }
}

/// Version of transpose_square with the numbers of its rows.
template <class Scalar, std::size_t bytes, int... row>
[[gnu::always_inline]] inline void transpose_rows(Scalar const* from, Index from_row, Scalar* to, Index to_row,
                                                  std::integer_sequence<int, row...> all) noexcept {
  typedef Scalar Vector __attribute__((vector_size(bytes)));
  typedef Scalar Unaligned __attribute__((vector_size(bytes), aligned(sizeof(Scalar)), may_alias));
  // Folds instead of loops, and no bytes are copied: only then do the rows stay in registers.
  Vector rows[] = {*reinterpret_cast<Unaligned const*>(from + row * from_row)...};
  if constexpr (sizeof(Scalar) == 4) {
    ((row % 4 ? void() : transpose_fours(rows[row], rows[row | 1], rows[row | 2], rows[row | 3], all)), ...);
    exchange_all<4>(rows, all);
  } else {
    exchange_all<1>(rows, all);
  }
  ((*reinterpret_cast<Unaligned*>(to + row * to_row) = rows[row]), ...);
}
#endif

/// Computes to[p * to_row + x] = from[x * from_row + p] for p and x below the lanes of a vector.
template <class Scalar, std::size_t bytes>
[[gnu::always_inline]] inline void transpose_square(Scalar const* from, Index from_row, Scalar* to,
                                                    Index to_row) noexcept {
  constexpr int lanes = bytes / sizeof(Scalar);
#if defined(LOCKSTEP_HAS_SHUFFLE)
  transpose_rows<Scalar, bytes>(from, from_row, to, to_row, std::make_integer_sequence<int, lanes>{});
#else
  for (Index p = 0; p < lanes; ++p)
    for (Index x = 0; x < lanes; ++x) to[p * to_row + x] = from[x * from_row + p];
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
