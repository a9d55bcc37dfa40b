// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include <lockstep/core/index.hpp>
#include <lockstep/kernel/detail/strided.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel::detail {

/// to[p * to_row + x] = from[x * from_row + p] for p and x below 4.
template <class T>
inline void transpose_4x4(T const* from, Index from_row, T* to, Index to_row) noexcept {
#if defined(__SSE2__)
  if constexpr (std::is_same_v<T, float>) {
    auto r0 = _mm_loadu_ps(from), r1 = _mm_loadu_ps(from + from_row);
    auto r2 = _mm_loadu_ps(from + 2 * from_row), r3 = _mm_loadu_ps(from + 3 * from_row);
    _MM_TRANSPOSE4_PS(r0, r1, r2, r3);
    _mm_storeu_ps(to, r0);
    _mm_storeu_ps(to + to_row, r1);
    _mm_storeu_ps(to + 2 * to_row, r2);
    _mm_storeu_ps(to + 3 * to_row, r3);
  } else
#endif
  {
    for (Index p = 0; p < 4; ++p)
      for (Index x = 0; x < 4; ++x) to[p * to_row + x] = from[x * from_row + p];
  }
}

/// One panel of `pack`: `valid` of its `width` columns exist.
template <class T, Index width>
void pack_panel(Strided<T const> b, Index depth, Index valid, T* out) {
  static_assert(width % 4 == 0);
  if (valid < width) std::fill_n(out, depth * width, T(0));
  Index const whole_columns = b.row == 1 ? valid / 4 * 4 : 0, whole_steps = depth / 4 * 4;
  for (Index p = 0; p < whole_steps; p += 4)
    for (Index x = 0; x < whole_columns; x += 4)
      transpose_4x4(b.data + x * b.column + p, b.column, out + p * width + x, width);
  for (Index p = 0; p < depth; ++p)
    for (Index x = p < whole_steps ? whole_columns : 0; x < valid; ++x)
      out[p * width + x] = b.data[p * b.row + x * b.column];
}

/// Copies [depth, columns] of B into panels of `width` columns, each step's columns side by side, zeros beyond the
/// last.
template <class T, Index width>
void pack(Strided<T const> b, Index depth, Index columns, T* out) {
  Index const in_rows = b.column == 1 ? columns / width * width : 0;
  for (Index p = 0; p < depth; ++p)  // whole rows, as they lie
    for (Index j = 0; j < in_rows; j += width)
      std::memcpy(out + j * depth + p * width, b.data + p * b.row + j, sizeof(T) * width);
  for (Index j = in_rows; j < columns; j += width)
    pack_panel<T, width>(b.at(0, j), depth, std::min(width, columns - j), out + j * depth);
}

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel::detail
