// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <tuple>

#include <lockstep/kernel/assembly.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

/// What the tokens of one segment are the sum of: a column of ids (of the layer's own table), an Embedding's lookup, or
/// a Sequence, all of the same sequences.
template <class... Part>
struct Sum {
  std::tuple<Part...> parts;
};
template <class... Part>
[[nodiscard]] Sum<Part...> sum(Part const&... parts) {
  return {{parts...}};
}

/// What sequences are put together from, for FusedEmbedding: each segment is a Sum or a single part of one.
template <kernel::Arrangement arrangement_, class... Segment>
struct Segments {
  static constexpr kernel::Arrangement arrangement = arrangement_;
  std::tuple<Segment...> all;
};
/// Step by step, one token of each: a0 b0 c0 a1 b1 c1.
template <class... Segment>
[[nodiscard]] Segments<kernel::Arrangement::interleaved, Segment...> interleave(Segment const&... segments) {
  return {{segments...}};
}
/// All of the first, then all of the second: a0 a1 b0 b1.
template <class... Segment>
[[nodiscard]] Segments<kernel::Arrangement::concatenated, Segment...> concatenate(Segment const&... segments) {
  return {{segments...}};
}

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
