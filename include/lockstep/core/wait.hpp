// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>
#include <limits>

#include <lockstep/core/clock.hpp>
#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// Time at which a wait gives up, in Clock::nanoseconds().
using Deadline = std::int64_t;

/// Waits without limit.
inline constexpr Deadline no_deadline = std::numeric_limits<Deadline>::max();

/// Returns the time `seconds` from now. More than about thirty years, or infinity, is no deadline.
[[nodiscard]] inline Deadline deadline_in(double seconds) noexcept {
  if (!(seconds < 1e9)) return no_deadline;
  return Clock::nanoseconds() + static_cast<Deadline>(seconds * 1e9);
}

/// The part of a wait before it sleeps: spins for some microseconds, then yields the core, which helps if there are
/// more threads than cores. Both are bounded by time, for two reasons. The cost of a spin differs tenfold between
/// processors. A slow yield means that other threads need the core, so that sleeping is better.
class Backoff {
 public:
  Backoff() = default;
  /// @param alone false if the awaited thread may need this core: yields without spinning
  explicit Backoff(bool alone) : spinning_(alone) {}

  /// Passes a little time and returns true. Returns false at once when it is time to sleep.
  bool pause() noexcept {
    if (spinning_ && ++spins_ % spins_per_look != 0) {
      relax();
      return true;
    }
    auto const now = Clock::nanoseconds();
    if (start_ == 0) start_ = now;
    spinning_ = spinning_ && now - start_ < longest_spin_ns;
    if (spinning_) {
      relax();
    } else {
      if (now - start_ > longest_wait_ns) return false;
      ::sched_yield();
    }
    return true;
  }

 private:
  static constexpr std::int64_t longest_spin_ns = 5'000;
  static constexpr std::int64_t longest_wait_ns = 50'000;
  static constexpr unsigned spins_per_look = 8;  // reading the clock costs about as much as a spin

  static void relax() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb" ::: "memory");  // `yield` does nothing on most cores
#endif
  }

  std::int64_t start_ = 0;
  unsigned spins_ = 0;
  bool spinning_ = true;
};

/// Which threads may wait for a Signal and change it.
enum class Sharing {
  threads,    ///< threads of this process
  processes,  ///< all processes that map its memory
};

/// A 32-bit number that threads change and wait for. All bytes zero is a valid Signal of value 0, so memory shared by
/// processes can hold one. Writes before a change are visible to every thread that sees the change. Thread-safe. A
/// waiter that dies asleep costs others only one system call per change.
template <Sharing sharing = Sharing::threads>
class alignas(64) Signal {
 public:
  /// Returns the current value, with acquire order.
  [[nodiscard]] std::uint32_t load() const noexcept { return value_.load(std::memory_order_acquire); }

  /// Sets the value without waking any waiter.
  void store(std::uint32_t value) noexcept { value_.store(value, std::memory_order_seq_cst); }
  /// Adds (or subtracts, by wrapping) without waking any waiter; returns the new value.
  std::uint32_t add(std::uint32_t by) noexcept { return value_.fetch_add(by, std::memory_order_seq_cst) + by; }
  /// Wakes up to `most` sleepers. Costs one load if there are none.
  void wake(int most = INT_MAX) noexcept {
    if (sleepers_.load(std::memory_order_seq_cst) != 0) futex(FUTEX_WAKE, static_cast<std::uint32_t>(most), nullptr);
  }
  /// Sets the value and wakes all waiters.
  void post(std::uint32_t value) noexcept {
    store(value);
    wake();
  }

  /// Waits until `holds(value)` or the deadline; returns the last result of `holds`. Spins, yields, then sleeps.
  template <class Predicate>
  bool wait(Predicate&& holds, Deadline deadline = no_deadline) noexcept {
    for (Backoff backoff;;) {
      if (holds(load())) return true;
      if (!backoff.pause()) return sleep(holds, deadline);
    }
  }
  /// Waits like `wait`, but sleeps at once. For callers that have already spun and yielded while they checked more than
  /// this number.
  template <class Predicate>
  bool sleep(Predicate&& holds, Deadline deadline = no_deadline) noexcept {
    // The count rises before the value is read, and wake() reads the count after the value changed: one sees the other.
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    auto const limit = to_timespec(deadline);
    bool held = false;
    for (;;) {
      auto const value = value_.load(std::memory_order_seq_cst);
      held = holds(value);
      if (held || (deadline != no_deadline && Clock::nanoseconds() >= deadline)) break;
      futex(FUTEX_WAIT_BITSET, value, deadline == no_deadline ? nullptr : &limit);  // may return spuriously
    }
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
    return held;
  }

 private:
  static std::timespec to_timespec(Deadline deadline) noexcept {
    return {deadline / 1'000'000'000, deadline % 1'000'000'000};
  }

  void futex(int operation, std::uint32_t argument, std::timespec const* limit) noexcept {
    static_assert(sizeof value_ == sizeof(std::uint32_t) && std::atomic<std::uint32_t>::is_always_lock_free);
    if constexpr (sharing == Sharing::threads) operation |= FUTEX_PRIVATE_FLAG;
    ::syscall(SYS_futex, &value_, operation, argument, limit, nullptr, FUTEX_BITSET_MATCH_ANY);
  }

  std::atomic<std::uint32_t> value_{0};
  std::atomic<std::uint32_t> sleepers_{0};
};

}}  // namespace lockstep
