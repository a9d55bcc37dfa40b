// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <lockstep/comm/detail/descriptor.hpp>
#include <lockstep/comm/operation.hpp>
#include <lockstep/core/wait.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm::detail {

/// A Descriptor and the number of its operation in one cache line, so that a waiting rank gets both at once. May be
/// read while it is written; the reader can detect this.
class alignas(64) SharedDescriptor {
 public:
  /// Writes the descriptor, then the number. Earlier writes are visible to a rank that reads the number.
  void store(Descriptor const& d, std::uint32_t number) noexcept;
  [[nodiscard]] bool has_number(std::uint32_t number) const noexcept;
  [[nodiscard]] Descriptor load() const noexcept;
  [[nodiscard]] Index address() const noexcept;

 private:
  static constexpr std::size_t words = sizeof(Descriptor) / sizeof(std::uint64_t);
  static_assert(sizeof(Descriptor) == words * sizeof(std::uint64_t) && sizeof(Descriptor) < 64);

  std::array<std::atomic<std::uint64_t>, words> words_;
  std::atomic<std::uint32_t> number_;
};

/// One rank's part of one operation.
struct Slot {
  static constexpr std::size_t small_bytes =
      2048;  // up to here, all ranks read all inputs: one synchronization, more reads
  static constexpr std::size_t copy_bytes = 4096;  // up to here, a copy replaces memory that other ranks cannot reach

  SharedDescriptor descriptor;
  alignas(64) std::array<double, static_cast<std::size_t>(CollectiveOperation::max_piggybacked_scalars)> scalars;
  alignas(64) std::array<std::byte, copy_bytes> input;  // copy of an input that other ranks do not read in place
};

/// Counter in a pair of cache lines of its own, because processors prefetch lines in pairs.
struct alignas(128) Counter {
  Signal<Sharing::processes> signal;
};

/// State that a rank shares with the others, in addition to its memory. Only this rank writes it, except sums in
/// `input` and `staging`. All zero bytes are the valid initial state. Counters increase without limit and wrap.
struct RankBlock {
  // Number of operations that a rank may be ahead of the slowest. Entries remain until their reuse, as a history.
  static constexpr std::uint32_t slots = 64;
  static constexpr std::size_t staging_bytes = std::size_t{256} << 10;

  Counter posted;    // operations that may be read: slot and, if reachable, memory
  Counter done;      // operations whose part on this rank is complete
  Counter staged;    // chunks of unreachable memory that are in `staging`
  Counter combined;  // chunks whose part on this rank is complete
  alignas(128) std::atomic<std::uint32_t> connected;
  // Used in rank 0's block only, written by all ranks:
  std::atomic<std::uint32_t> warned_operation;  // last operation for which a rank has warned, + 1
  std::atomic<std::uint32_t> history_reported;  // 1 after a rank has reported the last operations
  std::array<Slot, slots> slot;
  alignas(4096) std::array<std::byte, staging_bytes> staging;
};

/// Returns whether a counter has reached a target. Counters wrap, so the test is on their distance.
[[nodiscard]] bool reached(std::uint32_t value, std::uint32_t target) noexcept;

}}}  // namespace lockstep::comm::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/comm/shared_memory/detail/rank_block.ipp>
#endif
