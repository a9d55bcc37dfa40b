// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <lockstep/core/index.hpp>
#include <lockstep/kernel/detail/lanes.hpp>
#include <lockstep/kernel/detail/normalize_row.hpp>
#include <lockstep/kernel/embedding/embedding_inputs.hpp>

// Call all of these inside with_best_instructions.
namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Addresses that a pass over tokens needs soon, for prefetches. The processor cannot predict rows of a table, and
/// stores need their cache lines, too.
template <class Scalar>
struct NextRows {
  Scalar const *table, *to;  // may be any address: nothing is read
};

/// Computes `vectors` lanes of to = the sum of `count` rows, from column c on. Reads all rows before it writes, so that
/// no store delays a load. `count` is an int, or a constant that keeps the rows in registers.
template <std::size_t vectors, std::size_t bytes, class Scalar, class Count>
[[gnu::always_inline]] inline void sum_row_lanes(Vectors<bytes>, Scalar const* const* rows, Count count,
                                                 NextRows<Scalar> next, Index c, Scalar* __restrict to) noexcept {
  constexpr auto lanes = static_cast<std::size_t>(LanesOf<Scalar, bytes>::count);
  Lanes<Scalar, bytes> sums[vectors], other;
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

/// Computes to = the sum of `count` >= 1 rows, in order.
template <std::size_t bytes, class Scalar, class Count>
[[gnu::always_inline]] inline void sum_row_list(Vectors<bytes> vectors, Scalar const* const* rows, Count count,
                                                NextRows<Scalar> next, Scalar* __restrict to, Index width) noexcept {
  constexpr Index lanes = LanesOf<Scalar, bytes>::count, vectors_per_pass = 8;
  Index c = 0;
  for (; c + vectors_per_pass * lanes <= width; c += vectors_per_pass * lanes)
    sum_row_lanes<vectors_per_pass>(vectors, rows, count, next, c, to);
  for (; c + lanes <= width; c += lanes) sum_row_lanes<1>(vectors, rows, count, next, c, to);
  for (; c < width; ++c) {
    Scalar sum = rows[0][c];
    for (int k = 1; k < count; ++k) sum += rows[k][c];
    to[c] = sum;
  }
}

/// Tokens of one segment in one sequence: `count` tokens, whose steps within the segment are consecutive.
struct SegmentRun {
  int segment;
  Index step;    // of its first token
  Index first;   // token, counted from the beginning of the run
  Index stride;  // tokens from one to the next
  Index count;
};

/// Calls each(run) for the parts of a run of `count` tokens of sequence `row`, from `token` on.
template <class Each>
[[gnu::always_inline]] inline void for_segment_runs(Assembly<HostSpace> const& assembly, Index row, Index token,
                                                    Index count, Each const& each) noexcept {
  bool const interleaved = assembly.arrangement == Arrangement::interleaved;
  Index const stride = interleaved ? assembly.count : 1, end = interleaved ? std::min(stride, count) : count;
  for (Index first = 0, here; first < end; first += interleaved ? 1 : here) {
    auto const [segment, step] = assembly.locate(row, token + first);
    here = (count - first + stride - 1) / stride;
    if (!interleaved && segment + 1 < assembly.count)
      here = std::min(here, assembly.segments[segment].tokens(row) - step);
    each(SegmentRun{segment, step, first, stride, here});
  }
}

/// The rows whose sum is a token of a run. Finds once what the tokens have in common, because a token is little work.
template <class Scalar>
class TokenRows {
 public:
  [[gnu::always_inline]] TokenRows(EmbeddingInputs<Scalar, HostSpace> const& in, Index row, Index token,
                                   SegmentRun const& run, Index width) noexcept
      : tokens_(run.count), width_(width), scale_(in.scale), stride_(run.stride * width) {
    auto const entry = in.assembly.entry(row, {run.segment, run.step});
    auto const first_part = in.first_part[run.segment];
    for (int p = first_part; p < in.first_part[run.segment + 1]; ++p) {
      auto const& part = in.parts[p];
      if (part.is_table) {
        add(part.rows.data, width, part.ids + entry);
        if (p != first_part) continue;
        lookahead_ids_ = in.assembly.segments[run.segment].slots - entry;
        vocabulary_ = static_cast<std::uint64_t>(part.rows.extent[0]);
      } else {
        add(part.rows.data + entry * width, width);
      }
    }
    scaled_ = in.scale != Scalar(1) ? count_ : 0;
    if (in.position.data) {
      auto const* const positions = in.position.data + (in.first_position ? in.first_position[row] * width : 0);
      if (in.position_unit == PositionUnit::tokens)
        add(positions + (token + run.first) * width, run.stride * width);
      else
        add(positions + run.step * width, width);
    }
    if (in.type.data) add(in.type.data + run.segment * width, 0);
  }

  /// Computes the tokens before normalization, each at its position in the run; `to` is the position of the first one.
  template <std::size_t bytes>
  [[gnu::always_inline]] void sum(Vectors<bytes> vectors, Scalar* to) const noexcept {
    if (scaled_ == 0 && count_ == 2) return sum_few<2>(vectors, to);
    if (scaled_ == 0 && count_ == 3) return sum_few<3>(vectors, to);
    sum_general(vectors, to);
  }
  /// Version of `sum` with less code, and more time per token.
  template <std::size_t bytes>
  [[gnu::always_inline]] void sum_general(Vectors<bytes> vectors, Scalar* to) const noexcept {
    Scalar const* rows[capacity];
    rows[0] = nullptr;  // there is a part, a position or a type, but the compiler cannot know
    for (Index k = 0; k < tokens_; ++k, to += stride_) {
      for (int s = 0; s < count_; ++s) rows[s] = sources_[s].row(k);
      sum_row_list(vectors, rows, scaled_ > 0 ? scaled_ : count_, {next_table_row(k, to), to + stride_}, to, width_);
      if (scaled_ == 0) continue;
      for (Index i = 0; i < width_; ++i) to[i] *= scale_;
      for (int s = scaled_; s < count_; ++s)
        for (Index i = 0; i < width_; ++i) to[i] += rows[s][i];
    }
  }

 private:
  static constexpr std::size_t capacity = EmbeddingInputs<Scalar, HostSpace>::max_parts + 2;

  struct Source {
    Scalar const* rows;
    Index stride;             // elements from one row to the next
    std::int32_t const* ids;  // row of each token; null: consecutive rows
    [[gnu::always_inline]] Scalar const* row(Index k) const noexcept {
      return rows + (ids ? static_cast<Index>(ids[k]) : k) * stride;
    }
  };

  [[gnu::always_inline]] void add(Scalar const* rows, Index stride, std::int32_t const* ids = nullptr) noexcept {
    sources_[count_++] = {rows, stride, ids};
  }
  /// Sums so few rows that all their addresses stay in registers.
  template <std::size_t count, std::size_t bytes>
  [[gnu::always_inline]] void sum_few(Vectors<bytes> vectors, Scalar* to) const noexcept {
    Source sources[count];
    for (std::size_t s = 0; s < count; ++s) sources[s] = sources_[s];
    for (Index k = 0; k < tokens_; ++k, to += stride_) {
      Scalar const* rows[count];
      for (std::size_t s = 0; s < count; ++s) rows[s] = sources[s].row(k);
      sum_row_list(vectors, rows, std::integral_constant<int, static_cast<int>(count)>{},
                   {next_table_row(k, to), to + stride_}, to, width_);
    }
  }
  /// Returns the row of the segment's first table for the id two entries later, if the segment's first part is a table.
  /// Ids in padding may be arbitrary.
  [[gnu::always_inline]] Scalar const* next_table_row(Index k, Scalar const* otherwise) const noexcept {
    constexpr Index distance = 2;  // with a larger distance, the reads only wait for each other
    if (k + distance >= lookahead_ids_) return otherwise;
    auto const id = static_cast<Index>(sources_[0].ids[k + distance]);
    return static_cast<std::uint64_t>(id) < vocabulary_ ? sources_[0].rows + id * width_ : otherwise;
  }

  Index tokens_, width_;
  Scalar scale_;
  Index stride_;             // elements from one token to the next
  Index lookahead_ids_ = 0;  // ids of the first part that may be read
  std::uint64_t vocabulary_ = 0;
  int count_ = 0, scaled_ = 0;  // sources, and the number of them that are scaled
  Source sources_[capacity];
};

/// Normalizes x without weight and bias; returns the factor.
template <std::size_t bytes, class Scalar>
[[gnu::always_inline]] inline Scalar normalize(Vectors<bytes> vectors, EmbeddingInputs<Scalar, HostSpace> const& in,
                                               Scalar* x, Index width) noexcept {
  if (in.norm == Norm::layer) return normalize_row(vectors, x, width, in.epsilon);
  Scalar const reciprocal = 1 / std::sqrt(dot(vectors, x, x, width) / static_cast<Scalar>(width) + in.epsilon);
  for (Index i = 0; i < width; ++i) x[i] *= reciprocal;
  return reciprocal;
}

/// Computes a run of `count` tokens of sequence `row`, from `token` on, before dropout. Normalizes a few tokens at a
/// time while they are in cache.
template <std::size_t bytes, class Scalar>
[[gnu::always_inline]] inline void embed(Vectors<bytes> vectors, EmbeddingInputs<Scalar, HostSpace> const& in,
                                         Index row, Index token, Index count, Scalar* to, Index width) noexcept {
  Index const vectors_per_pass = in.norm == Norm::none ? count : 8;
  for (Index here; count > 0; token += here, count -= here, to += here * width) {
    here = std::min(vectors_per_pass, count);
    for_segment_runs(
        in.assembly, row, token, here, [ =, &in ](SegmentRun const& run) __attribute__((always_inline)) {
          TokenRows<Scalar> const rows(in, row, token, run, width);
          rows.sum(vectors, to + run.first * width);
        });
    for (Index k = 0; in.norm != Norm::none && k < here; ++k) {
      auto* const x = to + k * width;
      normalize(vectors, in, x, width);
      if (in.bias.data) {
        scale_row(x, in.weight.data, in.bias.data, x, width);
      } else {
        for (Index i = 0; i < width; ++i) x[i] *= in.weight.data[i];
      }
    }
  }
}

}}}  // namespace lockstep::kernel::detail
