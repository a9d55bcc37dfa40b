// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>

#include <lockstep/comm/piece.hpp>
#include <lockstep/memory/resource.hpp>

namespace lockstep::inline LOCKSTEP_ABI::comm {

/// What joins the ranks of a run. All ranks call the same operations in the same order; a rank's communicators, split
/// ones too, belong to one thread at a time.
///
/// `start(piece)` never blocks. Pieces complete in the order in which they were started. Progress is made inside
/// `start`, `progress`, `wait` and `finish`, by the calling thread; `wait(piece)` returns once that piece is complete,
/// `finish` once all that was started is. These two are where errors come out: RankLost, RankStalled,
/// CollectiveMismatch. After one of these nothing collective is tried any more: they throw it again.
///
/// `allocate` is collective: zeroed memory, as many bytes on all ranks, which pieces are worked on in without a copy.
/// Other memory works too, through a bounded copy, and gives equal bits. Blocks may outlive the communicator.
///
/// `split(color, key)` is collective: the communicator of the ranks that gave the same color, in order of their keys,
/// then of their ranks. Operations of different communicators have no order among each other, and of two that joined
/// the same ranks, both ranks complete those of one before they start those of the other.
///
/// Sums are the balanced binary tree over ranks: n ranks are the sum of the first p and of the other n - p, with p the
/// largest power of two below n; so for 3 ranks (a + b) + c, for 6 ((a + b) + (c + d)) + (e + f).
/// @determinism bitwise, for a given number of ranks, whichever engine, memory and cutting into pieces
template <class C>
concept Communicator = memory::MemoryResource<C> &&
    requires(C& c, C const& constant, Piece& piece, Piece const& started, int number) {
  { constant.rank() } -> std::same_as<int>;
  { constant.size() } -> std::same_as<int>;
  { constant.name() } -> std::convertible_to<char const*>;
  c.start(piece);
  c.progress();
  c.wait(started);
  c.finish();
  { c.split(number, number) } -> std::same_as<C>;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::comm
