// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>

#include <lockstep/comm/operation.hpp>
#include <lockstep/memory/resource.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm {

/// Connects the ranks of a run. All ranks must call the same operations in the same order. One thread at a time may use
/// a rank's communicators, including split ones.
///
/// `start(operation)` never blocks. Operations complete in the order in which they were started. The calling thread
/// makes progress inside `start`, `progress`, `wait` and `finish`. `wait(operation)` returns once that operation is
/// complete, `finish` once all started operations are. Only these two throw RankLost, RankStalled and
/// CollectiveMismatch. After such an error every call to them throws it again, and no further collective runs.
///
/// `allocate` is collective and returns zeroed memory of equal size on all ranks. Operations work in it without a copy.
/// Other memory works too, through a bounded copy, with bit-identical results. Blocks may outlive the communicator.
///
/// `split(color, key)` is collective. It returns the communicator of the ranks with equal colors, ordered by key and
/// then by rank. Operations of different communicators have no order among each other. If two communicators connect the
/// same ranks, both ranks must complete the operations of one before they start operations of the other.
///
/// Sums use the balanced binary tree over ranks. The sum of n ranks is the sum of the first p plus the sum of the other
/// n - p. Here p is the largest power of two below n. So 3 ranks give (a + b) + c, and 6 give
/// ((a + b) + (c + d)) + (e + f).
/// @determinism bitwise for a given number of ranks, for any engine, memory and split into operations
template <class Candidate>
concept Communicator = memory::MemoryResource<Candidate> &&
    requires(Candidate& c, Candidate const& constant, CollectiveOperation& operation,
             CollectiveOperation const& started, int number) {
  { constant.rank() } -> std::same_as<int>;
  { constant.size() } -> std::same_as<int>;
  { constant.name() } -> std::convertible_to<char const*>;
  c.start(operation);
  c.progress();
  c.wait(started);
  c.finish();
  { c.split(number, number) } -> std::same_as<Candidate>;
};

}}}  // namespace lockstep::comm
