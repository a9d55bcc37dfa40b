// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/kernel/sequence_layout.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// How the tokens of several segments are ordered in one sequence.
enum class Arrangement {
  concatenated,  ///< all tokens of the first segment, then all of the second: a0 a1 b0 b1
  interleaved,   ///< one token of each segment per step: a0 b0 a1 b1; segments of a sequence are equally long
};

/// Sequences assembled from segments: sequence r of the result consists of sequence r of each segment. The segments are
/// all padded or all ragged, and so is the result. Copies nothing: describes where tokens go.
template <class Space>
struct Assembly {
  static constexpr int max_segments = 8;  ///< limit of `count`

  int count = 0;                                        ///< number of segments
  Arrangement arrangement = Arrangement::concatenated;  ///< of the tokens
  SequenceLayout<Space> segments[max_segments]{};       ///< layouts of the segments
  SequenceLayout<Space> layout{};                       ///< layout of the result

  /// Segment and step of one token.
  struct Location {
    int segment;  ///< in [0, count)
    Index step;   ///< within its segment
  };
  /// Returns where a token of the result comes from.
  [[nodiscard]] constexpr Location locate(Index row, Index token) const noexcept {
    if (count == 1) return {0, token};
    if (arrangement == Arrangement::interleaved) return {static_cast<int>(token % count), token / count};
    int segment = 0;
    for (; segment + 1 < count && token >= segments[segment].tokens(row); ++segment)
      token -= segments[segment].tokens(row);
    return {segment, token};
  }
  /// Returns the token of the result at this location.
  [[nodiscard]] constexpr Index token(Index row, Location location) const noexcept {
    if (arrangement == Arrangement::interleaved) return location.step * count + location.segment;
    for (int segment = 0; segment < location.segment; ++segment) location.step += segments[segment].tokens(row);
    return location.step;
  }
  /// Returns the token's slot within its segment.
  [[nodiscard]] constexpr Index entry(Index row, Location location) const noexcept {
    return segments[location.segment].start(row) + location.step;
  }

  /// Returns the number of `bound`s: one for each sequence, and for ragged layouts the end of the last.
  [[nodiscard]] constexpr Index bounds() const noexcept {
    return segments[0].is_ragged() ? segments[0].rows + 1 : segments[0].rows;
  }
  /// Returns the number of tokens (padded) or the first slot (ragged) of sequence `row` of the result.
  [[nodiscard]] constexpr Index bound(Index row) const noexcept {
    Index sum = 0;
    for (int segment = 0; segment < count; ++segment)
      sum += segments[segment].is_ragged() ? segments[segment].offsets.data[row] : segments[segment].tokens(row);
    return sum;
  }
};

}}}  // namespace lockstep::kernel
