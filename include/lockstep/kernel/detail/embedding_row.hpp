// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>

#include <lockstep/core/index.hpp>
#include <lockstep/kernel/detail/normalize_row.hpp>
#include <lockstep/kernel/embedding_inputs.hpp>

// All of these are to be called inside with_best_instructions.
namespace lockstep::inline LOCKSTEP_ABI::kernel::detail {

/// to = the sum of `count` >= 1 rows, in order.
template <class T>
[[gnu::always_inline]] inline void add_up(T const* const* rows, int count, T* __restrict to, Index width) noexcept {
  auto const *const a = rows[0], *const b = rows[count > 1 ? 1 : 0], *const c = rows[count > 2 ? 2 : 0];
  if (count == 1)
    for (Index i = 0; i < width; ++i) to[i] = a[i];
  else if (count == 2)
    for (Index i = 0; i < width; ++i) to[i] = a[i] + b[i];
  else
    for (Index i = 0; i < width; ++i) to[i] = a[i] + b[i] + c[i];
  for (int k = 3; k < count; ++k)
    for (Index i = 0; i < width; ++i) to[i] += rows[k][i];
}

/// What a token is before normalisation.
template <class T>
[[gnu::always_inline]] inline void sum_of_parts(EmbeddingInputs<T, HostSpace> const& in, Index row,
                                                typename Assembly<HostSpace>::Place place, Index token, T* to,
                                                Index width) noexcept {
  T const* rows[EmbeddingInputs<T, HostSpace>::most_parts + 2];
  rows[0] = nullptr;  // there is a part, a position or a type; the compiler cannot know
  int count = 0;
  auto const entry = in.assembly.entry(row, place);
  for (int p = in.first_part[place.segment]; p < in.first_part[place.segment + 1]; ++p) {
    auto const& part = in.parts[p];
    rows[count++] = part.rows.data + (part.is_table ? static_cast<Index>(part.ids[entry]) : entry) * width;
  }
  if (in.scale != T(1) && count > 0) {
    add_up(rows, count, to, width);
    for (Index i = 0; i < width; ++i) to[i] *= in.scale;
    rows[0] = to;
    count = 1;
  }
  if (in.position.data) rows[count++] = in.position.data + (in.counted == Counted::tokens ? token : place.step) * width;
  if (in.type.data) rows[count++] = in.type.data + place.segment * width;
  if (rows[0] != to) return add_up(rows, count, to, width);
  for (int k = 1; k < count; ++k)
    for (Index i = 0; i < width; ++i) to[i] += rows[k][i];
}

/// x = its normalised form without weight and bias; returns the factor that did it.
template <class T>
[[gnu::always_inline]] inline T normalize(EmbeddingInputs<T, HostSpace> const& in, T* x, Index width) noexcept {
  if (in.norm == Norm::layer) return normalize_row(x, width, in.epsilon);
  T const reciprocal = 1 / std::sqrt(dot(x, x, width) / static_cast<T>(width) + in.epsilon);
  for (Index i = 0; i < width; ++i) x[i] *= reciprocal;
  return reciprocal;
}

/// What a token is before dropout.
template <class T>
[[gnu::always_inline]] inline void embed(EmbeddingInputs<T, HostSpace> const& in, Index row,
                                         typename Assembly<HostSpace>::Place place, Index token, T* to,
                                         Index width) noexcept {
  sum_of_parts(in, row, place, token, to, width);
  if (in.norm == Norm::none) return;
  normalize(in, to, width);
  if (in.bias.data) return scale_row(to, in.weight.data, in.bias.data, to, width);
  for (Index i = 0; i < width; ++i) to[i] *= in.weight.data[i];
}

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel::detail
