// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <lockstep/comm/piece.hpp>
#include <lockstep/core/wait.hpp>

namespace lockstep::inline LOCKSTEP_ABI::comm::detail {

/// A Collective, or `allocate`, which moves nothing: ranks compare what they ask for.
enum class Kind : std::uint32_t { all_reduce, reduce_scatter, all_gather, broadcast, barrier, allocate };

/// What a rank says about an operation, for the others to read.
struct Descriptor {
  Kind kind;
  ElementType type;
  Operation operation;
  std::int32_t riders;
  std::int32_t root;
  std::uint32_t parts;  // of unequal parts: what their sizes hash to, never 0
  Index count;          // elements, of all parts where they are unequal
  Index own;            // of unequal parts: this rank's
  Index address;        // of the rank's input, from the start of the segment; -1 when the others cannot reach it
  double started_seconds;
};

/// A Descriptor with the number of its operation, in one cache line, so that whoever waits for it has both at once. It
/// may be read while it is written; the reader finds out that it was.
class alignas(64) SharedDescriptor {
 public:
  /// What was written before is visible to whoever sees the number.
  void store(Descriptor const& d, std::uint32_t number) noexcept {
    std::array<std::uint64_t, words> plain;
    std::memcpy(plain.data(), &d, sizeof d);
    for (std::size_t i = 0; i < words; ++i) words_[i].store(plain[i], std::memory_order_relaxed);
    number_.store(number + 1, std::memory_order_release);
  }
  [[nodiscard]] bool is_of(std::uint32_t number) const noexcept {
    return number_.load(std::memory_order_acquire) == number + 1;
  }
  [[nodiscard]] Descriptor load() const noexcept {
    std::array<std::uint64_t, words> plain;
    for (std::size_t i = 0; i < words; ++i) plain[i] = words_[i].load(std::memory_order_relaxed);
    Descriptor d;
    std::memcpy(&d, plain.data(), sizeof d);
    return d;
  }
  [[nodiscard]] Index address() const noexcept {
    return static_cast<Index>(
        words_[offsetof(Descriptor, address) / sizeof(std::uint64_t)].load(std::memory_order_relaxed));
  }

 private:
  static constexpr std::size_t words = sizeof(Descriptor) / sizeof(std::uint64_t);
  static_assert(sizeof(Descriptor) == words * sizeof(std::uint64_t) && sizeof(Descriptor) < 64);

  std::array<std::atomic<std::uint64_t>, words> words_;
  std::atomic<std::uint32_t> number_;
};

/// A rank's side of one operation.
struct Slot {
  static constexpr std::size_t small_bytes = 2048;  // up to here every rank reads all inputs: one meeting, more reading
  static constexpr std::size_t copy_bytes = 4096;   // up to here a copy stands in for memory that cannot be reached

  SharedDescriptor descriptor;
  alignas(64) std::array<double, static_cast<std::size_t>(Piece::most_riders)> rider;
  alignas(64) std::array<std::byte, copy_bytes> input;  // a copy, where the others do not read the input itself
};

/// A counter of its own pair of cache lines, which processors fetch together.
struct alignas(128) Counter {
  Signal<Sharing::processes> signal;
};

/// What a rank shares with the others besides its memory. It alone writes it, but for sums in `input` and `staging`.
/// All bytes zero is the valid start. Counters count up for ever and wrap.
struct RankBlock {
  // Operations that a rank may be ahead of the slowest. They stay there until the next one: what a rank did last.
  static constexpr std::uint32_t slots = 64;
  static constexpr std::size_t staging_bytes = std::size_t{256} << 10;

  Counter posted;    // operations that may be read: slot and, where it can be reached, memory
  Counter done;      // operations of which this rank's part is complete
  Counter staged;    // chunks of unreachable memory that lie in `staging`
  Counter combined;  // chunks of which this rank's part is complete
  alignas(128) std::atomic<std::uint32_t> connected;
  // Of rank 0 only, written by all:
  std::atomic<std::uint32_t> warned;  // the last operation that someone was warned of, + 1
  std::atomic<std::uint32_t> told;    // 1 when someone has told what the ranks did last
  std::array<Slot, slots> slot;
  alignas(4096) std::array<std::byte, staging_bytes> staging;
};

/// Counters wrap, so they are compared by distance.
[[nodiscard]] inline bool reached(std::uint32_t value, std::uint32_t target) noexcept {
  return static_cast<std::int32_t>(value - target) >= 0;
}

}  // namespace lockstep::inline LOCKSTEP_ABI::comm::detail
