// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <lockstep/kernel/embedding/embedding_inputs.hpp>

#include "kernel/values.hpp"

namespace lockstep_test {

using lockstep::Index;
using lockstep::kernel::Arrangement;
using lockstep::kernel::DropoutMask;
using lockstep::kernel::Norm;
using lockstep::kernel::PositionUnit;

enum class Ids { spread, skewed, all_equal, extremes };

/// Settings of an EmbeddingCase.
struct EmbeddingKind {
  Index rows = 5, length = 9, width = 8, vocabulary = 53;
  Ids ids = Ids::spread;
  double dropout = 0;
  int segments = 1;
  Arrangement arrangement = Arrangement::concatenated;
  bool ragged = false;
  PositionUnit position_unit = PositionUnit::tokens;
  double scale = 1;
  Norm norm = Norm::none;
  bool types = false, sums = false;  // sums: a table, a second one and dense rows in each segment, else one of them
  bool positions = true;
};

/// The inputs of a fused embedding and the gradient of its output, in host memory. Padding contains ids outside the
/// tables and NaN gradients.
template <class T>
struct EmbeddingCase {
  struct Part {
    std::vector<T> rows;
    std::vector<std::int32_t> ids;  // ids of a table
    Index count = 0;                // number of rows
    bool is_table = false;
  };
  struct Segment {
    Index length = 0;                   // padded: slots per sequence
    std::vector<std::int32_t> lengths;  // tokens of each sequence
    std::vector<Index> offsets;
    std::vector<Part> parts;
    [[nodiscard]] Index start(bool ragged, Index row) const {
      return ragged ? offsets[static_cast<std::size_t>(row)] : row * length;
    }
    [[nodiscard]] Index slots(bool ragged) const {
      return ragged ? offsets.back() : static_cast<Index>(lengths.size()) * length;
    }
  };
  struct Token {
    int segment;
    Index step, entry;
  };

  EmbeddingKind kind;
  std::vector<Segment> segments;
  std::vector<Index> positions;
  Index most_positions = 0;
  std::vector<T> position, type, weight, bias, dy;
  DropoutMask mask;

  explicit EmbeddingCase(EmbeddingKind const& k) : kind(k), mask(DropoutMask::of(1234, k.dropout)) {
    for (Index r = 0; r < k.rows; ++r) positions.push_back(77 * r + (r % 2 ? Index{1} << 33 : 0));
    for (int s = 0; s < k.segments; ++s) add_segment(s);
    most_positions = (k.position_unit == PositionUnit::tokens ? length() : k.length) + 2;
    if (k.positions) position = values<T>(most_positions * k.width, 2);
    if (k.types) type = values<T>(k.segments * k.width, 4);
    if (k.norm != Norm::none) weight = values<T>(k.width, 5);
    if (k.norm == Norm::layer) bias = values<T>(k.width, 6);
    dy = values<T>(slots() * k.width, 3);
    for (Index r = 0; r < k.rows; ++r)
      for (Index i = (start(r) + tokens(r)) * k.width; i < start(r + 1) * k.width; ++i)
        dy[static_cast<std::size_t>(i)] = std::numeric_limits<T>::quiet_NaN();
  }

  [[nodiscard]] Index length() const {  // length of a padded result
    Index sum = 0;
    for (auto const& s : segments) sum += s.length;
    return sum;
  }
  [[nodiscard]] Index start(Index row) const {
    if (!kind.ragged) return row * length();
    Index sum = 0;
    for (auto const& s : segments) sum += s.offsets[static_cast<std::size_t>(row)];
    return sum;
  }
  [[nodiscard]] Index slots() const { return start(kind.rows); }
  [[nodiscard]] Index tokens(Index row) const {
    Index sum = 0;
    for (auto const& s : segments) sum += s.lengths[static_cast<std::size_t>(row)];
    return sum;
  }
  /// By the definition of the arrangements.
  [[nodiscard]] Token token(Index row, Index t) const {
    int segment = 0;
    Index step = t;
    if (kind.arrangement == Arrangement::interleaved) {
      segment = static_cast<int>(t % kind.segments);
      step = t / kind.segments;
    } else {
      while (step >= segments[static_cast<std::size_t>(segment)].lengths[static_cast<std::size_t>(row)])
        step -= segments[static_cast<std::size_t>(segment++)].lengths[static_cast<std::size_t>(row)];
    }
    return {segment, step, segments[static_cast<std::size_t>(segment)].start(kind.ragged, row) + step};
  }
  /// Returns dropout's factor of channel c of token t of a sequence.
  [[nodiscard]] T factor(Index row, Index t, Index c) const {
    if (!mask.active()) return 1;
    bool const kept = mask.keeps(static_cast<std::uint64_t>(positions[static_cast<std::size_t>(row)]),
                                 static_cast<std::uint64_t>(t * kind.width + c));
    return kept ? static_cast<T>(mask.scale()) : T{0};
  }

 private:
  void add_segment(int number) {
    auto const& k = kind;
    bool const interleaved_segments = k.arrangement == Arrangement::interleaved;
    Segment segment;
    segment.length = k.length - (interleaved_segments || k.length == 0 ? 0 : number % 2);
    segment.offsets = {0};
    for (Index r = 0; r < k.rows; ++r) {  // full, empty, one and half, in turn
      auto const n = segment.length;
      Index const some[] = {n, 0, std::min<Index>(1, n), n / 2};
      segment.lengths.push_back(static_cast<std::int32_t>(some[(r + (interleaved_segments ? 0 : number)) % 4]));
      segment.offsets.push_back(segment.offsets.back() + segment.lengths.back());
    }
    auto const seed = static_cast<std::uint64_t>(100 * number);
    auto const slots = segment.slots(k.ragged);
    for (int p = 0; p < (k.sums ? 3 : 1); ++p) {
      Part part;
      bool const table = k.sums ? p < 2 : number % 2 == 0;
      part.is_table = table;
      part.count = table ? (p == 1 ? 3 : k.vocabulary) : slots;
      part.rows = values<T>(part.count * k.width, seed + static_cast<std::uint64_t>(p) + 10);
      if (table) part.ids = ids_of(segment, slots, part.count, number + p);
      segment.parts.push_back(part);
    }
    segments.push_back(segment);
  }
  std::vector<std::int32_t> ids_of(Segment const& segment, Index slots, Index count, Index salt) const {
    std::vector<std::int32_t> ids(static_cast<std::size_t>(slots), -7);
    for (Index r = 0; r < kind.rows; ++r)
      for (Index t = 0; t < segment.lengths[static_cast<std::size_t>(r)]; ++t) {
        auto const at = segment.start(kind.ragged, r) + t;
        ids[static_cast<std::size_t>(at)] = id(at + 1000 * salt, count);
      }
    return ids;
  }
  [[nodiscard]] std::int32_t id(Index i, Index count) const {
    auto const spread = (i * 2654435761) % 1'000'003;
    switch (kind.ids) {
      case Ids::spread:
        return static_cast<std::int32_t>(spread % count);
      case Ids::skewed:
        return static_cast<std::int32_t>(spread % count * (spread % 7) / 7 * (spread % 11) / 11);
      case Ids::all_equal:
        return static_cast<std::int32_t>(count / 2);
      case Ids::extremes:
        return static_cast<std::int32_t>(i % 2 == 0 ? 0 : count - 1);
    }
    return 0;
  }
};

}  // namespace lockstep_test
