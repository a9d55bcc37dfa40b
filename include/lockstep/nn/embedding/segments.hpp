// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <tuple>

#include <lockstep/kernel/embedding/assembly.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Parts whose sum is the tokens of one segment. A part is a column of ids (for the layer's own table), an Embedding's
/// lookup, or a Sequence. All parts must belong to the same sequences.
template <class... Part>
struct Sum {
  std::tuple<Part...> parts;  ///< summed by token
};
/// Returns the sum of parts as one segment, for FusedEmbedding.
template <class... Part>
[[nodiscard]] Sum<Part...> sum(Part const&... parts) {
  return {{parts...}};
}

/// Segments from which FusedEmbedding assembles sequences: each is a Sum, or a single part.
template <kernel::Arrangement arrangement_, class... Segment>
struct Segments {
  static constexpr kernel::Arrangement arrangement = arrangement_;  ///< interleaved or concatenated
  std::tuple<Segment...> all;                                       ///< in order
};
/// Interleaves the segments token by token: a0 b0 c0 a1 b1 c1.
template <class... Segment>
[[nodiscard]] Segments<kernel::Arrangement::interleaved, Segment...> interleave(Segment const&... segments) {
  return {{segments...}};
}
/// Concatenates the segments of each sequence: a0 a1 b0 b1.
template <class... Segment>
[[nodiscard]] Segments<kernel::Arrangement::concatenated, Segment...> concatenate(Segment const&... segments) {
  return {{segments...}};
}

}}}  // namespace lockstep::nn
