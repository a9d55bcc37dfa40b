// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstddef>

#include <lockstep/core/index.hpp>
#include <lockstep/kernel/detail/lanes.hpp>
#include <lockstep/kernel/detail/normalize_row.hpp>
#include <lockstep/kernel/embedding_inputs.hpp>

// All of these are to be called inside with_best_instructions.
namespace lockstep::inline LOCKSTEP_ABI::kernel::detail {

/// What a pass over tokens needs before long: a table's rows lie anywhere, so that the processor foresees none of them,
/// and a line that is stored to has to be fetched like any other.
template <class T>
struct NextRows {
  T const *table, *to;  // may be any address: nothing is read
};

/// `vectors` lanes of to = the sum of `count` rows, from column c on. All of them are read before one is written, so
/// that no store waits in front of a load.
template <std::size_t vectors, std::size_t bytes, class T>
[[gnu::always_inline]] inline void add_up_lanes(Vectors<bytes>, T const* const* rows, int count, NextRows<T> next,
                                                Index c, T* __restrict to) noexcept {
  constexpr auto lanes = static_cast<std::size_t>(LanesOf<T, bytes>::count);
  Lanes<T, bytes> sums[vectors], other;
#pragma GCC unroll 8
  for (std::size_t v = 0; v < vectors; ++v) {
    if (v * bytes % 64 == 0) {
      __builtin_prefetch(next.table + c + v * lanes);
      __builtin_prefetch(next.to + c + v * lanes, 1);
    }
    load(sums[v], rows[0] + c + v * lanes);
  }
  for (int k = 1; k < count; ++k) {
    auto const* const row = rows[k] + c;
#pragma GCC unroll 8
    for (std::size_t v = 0; v < vectors; ++v) {
      load(other, row + v * lanes);
      sums[v] += other;
    }
  }
#pragma GCC unroll 8
  for (std::size_t v = 0; v < vectors; ++v) store(to + c + v * lanes, sums[v]);
}

/// to = the sum of `count` >= 1 rows, in order.
template <std::size_t bytes, class T>
[[gnu::always_inline]] inline void add_up(Vectors<bytes> vectors, T const* const* rows, int count, NextRows<T> next,
                                          T* __restrict to, Index width) noexcept {
  constexpr Index lanes = LanesOf<T, bytes>::count, together = 8;
  Index c = 0;
  for (; c + together * lanes <= width; c += together * lanes)
    add_up_lanes<together>(vectors, rows, count, next, c, to);
  for (; c + lanes <= width; c += lanes) add_up_lanes<1>(vectors, rows, count, next, c, to);
  for (; c < width; ++c) {
    T sum = rows[0][c];
    for (int k = 1; k < count; ++k) sum += rows[k][c];
    to[c] = sum;
  }
}

/// The row that a segment's first table gives two entries later, or `otherwise`. In padding, ids may be anything.
template <class T>
[[gnu::always_inline]] inline T const* next_of_table(EmbeddingInputs<T, HostSpace> const& in, int segment, Index entry,
                                                     T const* otherwise) noexcept {
  constexpr Index ahead = 2;  // further ahead, reads only wait for one another
  auto const first = in.first_part[segment];
  if (first == in.first_part[segment + 1]) return otherwise;
  auto const& part = in.parts[first];
  if (!part.is_table || entry + ahead >= in.assembly.segments[segment].slots) return otherwise;
  auto const id = static_cast<Index>(part.ids[entry + ahead]);
  return id >= 0 && id < part.rows.extent[0] ? part.rows.data + id * part.rows.extent[1] : otherwise;
}

/// What a token is before normalisation.
template <std::size_t bytes, class T>
[[gnu::always_inline]] inline void sum_of_parts(Vectors<bytes> vectors, EmbeddingInputs<T, HostSpace> const& in,
                                                Index row, typename Assembly<HostSpace>::Place place, Index token,
                                                T* to, Index width) noexcept {
  T const* rows[EmbeddingInputs<T, HostSpace>::most_parts + 2];
  rows[0] = nullptr;  // there is a part, a position or a type; the compiler cannot know
  int count = 0;
  auto const entry = in.assembly.entry(row, place);
  NextRows<T> const next{next_of_table(in, place.segment, entry, to), to + width};
  for (int p = in.first_part[place.segment]; p < in.first_part[place.segment + 1]; ++p) {
    auto const& part = in.parts[p];
    rows[count++] = part.rows.data + (part.is_table ? static_cast<Index>(part.ids[entry]) : entry) * width;
  }
  auto const scaled = in.scale != T(1) ? count : 0;
  if (in.position.data) rows[count++] = in.position.data + (in.counted == Counted::tokens ? token : place.step) * width;
  if (in.type.data) rows[count++] = in.type.data + place.segment * width;
  add_up(vectors, rows, scaled > 0 ? scaled : count, next, to, width);
  if (scaled == 0) return;
  for (Index i = 0; i < width; ++i) to[i] *= in.scale;
  for (int k = scaled; k < count; ++k)
    for (Index i = 0; i < width; ++i) to[i] += rows[k][i];
}

/// x = its normalised form without weight and bias; returns the factor that did it.
template <std::size_t bytes, class T>
[[gnu::always_inline]] inline T normalize(Vectors<bytes> vectors, EmbeddingInputs<T, HostSpace> const& in, T* x,
                                          Index width) noexcept {
  if (in.norm == Norm::layer) return normalize_row(vectors, x, width, in.epsilon);
  T const reciprocal = 1 / std::sqrt(dot(vectors, x, x, width) / static_cast<T>(width) + in.epsilon);
  for (Index i = 0; i < width; ++i) x[i] *= reciprocal;
  return reciprocal;
}

/// What a token is before dropout.
template <std::size_t bytes, class T>
[[gnu::always_inline]] inline void embed(Vectors<bytes> vectors, EmbeddingInputs<T, HostSpace> const& in, Index row,
                                         typename Assembly<HostSpace>::Place place, Index token, T* to,
                                         Index width) noexcept {
  sum_of_parts(vectors, in, row, place, token, to, width);
  if (in.norm == Norm::none) return;
  normalize(vectors, in, to, width);
  if (in.bias.data) return scale_row(to, in.weight.data, in.bias.data, to, width);
  for (Index i = 0; i < width; ++i) to[i] *= in.weight.data[i];
}

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel::detail
