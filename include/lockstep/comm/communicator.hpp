// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <cstddef>

#include <lockstep/comm/piece.hpp>
#include <lockstep/memory/resource.hpp>

namespace lockstep::inline LOCKSTEP_ABI::comm {

/// What joins the ranks of a run. All ranks call the same operations in the same order; a rank's communicator belongs
/// to one thread at a time.
///
/// `start(piece)` never blocks. Pieces complete in the order in which they were started. Progress is made inside
/// `start`, `progress` and `finish`, by the calling thread; `finish` returns once all that was started is complete, and
/// it is where errors come out: RankLost, RankStalled, CollectiveMismatch. After one of these nothing collective is
/// tried any more.
///
/// `allocate` is collective: zeroed memory, as many bytes on all ranks, which pieces are summed in without a copy.
/// Other memory works too, through a bounded copy, and gives equal bits. Blocks may outlive the communicator.
///
/// `broadcast`, `all_gather` and `barrier` first complete what was started, and return when they are complete
/// themselves. The input of an all_gather may be this rank's own place in the output.
///
/// Sums are the balanced binary tree over ranks: n ranks are the sum of the first p and of the other n - p, with p the
/// largest power of two below n; so for 3 ranks (a + b) + c, for 6 ((a + b) + (c + d)) + (e + f).
/// @determinism bitwise, for a given number of ranks, whichever engine, memory and cutting into pieces
template <class C>
concept Communicator = memory::MemoryResource<C> &&
    requires(C& c, C const& constant, Piece& piece, void* data, void const* in, std::size_t bytes, int root) {
  { constant.rank() } -> std::same_as<int>;
  { constant.size() } -> std::same_as<int>;
  { constant.name() } -> std::convertible_to<char const*>;
  c.start(piece);
  c.progress();
  c.finish();
  c.broadcast(data, bytes, root);  // the root's bytes become everybody's
  c.all_gather(in, data, bytes);   // data[r * bytes ...] = in of rank r, `bytes` long each
  c.barrier();
};

}  // namespace lockstep::inline LOCKSTEP_ABI::comm
