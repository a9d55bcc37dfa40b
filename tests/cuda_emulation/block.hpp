// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <string>

#include "device.hpp"

// A fiber's saved position. The compiler's own jumps take a tenth of the C library's time, which sanitizers need.
#if defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
namespace cuda_emulation {
using Place = void* [5];
}
#define LOCKSTEP_SAVE_PLACE(place) __builtin_setjmp(place)
#define LOCKSTEP_JUMP(place) __builtin_longjmp(place, 1)
#define LOCKSTEP_OPTIMIZED [[gnu::optimize("O2")]]  // also in tests without optimization
#define LOCKSTEP_APART [[gnu::noipa]]               // callers know nothing of it, as of a call that returns later
#else
#include <setjmp.h>
namespace cuda_emulation {
using Place = jmp_buf;
}
#define LOCKSTEP_SAVE_PLACE(place) _setjmp(place)
#define LOCKSTEP_JUMP(place) _longjmp(place, 1)
#define LOCKSTEP_OPTIMIZED
#define LOCKSTEP_APART
#endif

/// Runs CUDA kernels on the host, with a fiber for each thread of a block, so that their logic can be tested without a
/// GPU. Blocks run in sequence and threads in one order, reversed in the next launch, so an unordered sum or a missing
/// barrier tends to show. Speed and races between blocks are not emulated.
namespace cuda_emulation {

struct Three {
  unsigned x = 1, y = 1, z = 1;
};

inline constexpr unsigned warp_size = 32, max_threads = 1024;

/// The line of a kernel at which its threads wait.
struct Site {
  char const* file = "";
  int line = 0;
  bool operator==(Site const& other) const noexcept {
    return line == other.line && (file == other.file || !std::strcmp(file, other.file));
  }
};

class Machine {
 public:
  Three thread{0, 0, 0}, block{0, 0, 0}, threads, blocks;

  ~Machine() {
    for (unsigned i = 0; i < made_; ++i) delete fibers_[i];
  }
  Machine(Machine const&) = delete;
  Machine& operator=(Machine const&) = delete;

  /// In sequence, because a kernel's block-shared variables are static.
  static Machine& instance() {
    static Machine machine;
    return machine;
  }

  void run(Three grid, Three block_size, std::size_t shared_bytes, std::function<void()> const& body) {
    std::lock_guard const lock(mutex_);
    blocks = grid;
    threads = block_size;
    count_ = threads.x * threads.y;
    body_ = &body;
    // With exactly the launch's size, so that the address sanitizer finds accesses beyond the end.
    struct Shared {
      std::size_t bytes;
      std::byte* const memory = bytes > 0 ? static_cast<std::byte*>(::operator new (bytes,
                                                                                    std::align_val_t{shared_alignment}))
                                          : nullptr;
      ~Shared() { ::operator delete (memory, std::align_val_t{shared_alignment}); }
    } const shared{shared_bytes};
    dynamic_shared_ = shared.memory;
    backwards_ = !backwards_;
    auto const count = std::uint64_t{grid.x} * grid.y;
    for (std::uint64_t i = 0; i < count; ++i) {
      auto const number = backwards_ ? count - 1 - i : i;
      block = {static_cast<unsigned>(number % grid.x), static_cast<unsigned>(number / grid.x), 0};
      if (shared_bytes > 0) std::memset(shared.memory, 0xff, shared_bytes);  // a block sees no values of other blocks
      run_block();
    }
  }

  LOCKSTEP_OPTIMIZED void wait_for_block(Site site) { wait(block_barrier_, count_, site); }
  /// Whole warps only: `mask` names the participating lanes.
  LOCKSTEP_OPTIMIZED void wait_for_warp(unsigned mask, Site site) {
    if (mask != ~0u) refuse_part(site);
    wait(warp_barriers_[current_ / warp_size], warp_size, site);
  }

  /// Every lane stores a value and then reads another lane's.
  template <class T>
  T exchange(unsigned mask, T value, unsigned from, Site site) {
    static_assert(sizeof(T) <= sizeof(std::uint64_t));
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    bits = exchange_bits(mask, bits, from, site);
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  [[nodiscard]] unsigned lane() const noexcept { return current_ % warp_size; }

  /// The dynamic shared memory of the running block. Its bytes are NaNs of every type until a thread writes them.
  [[nodiscard]] std::byte* dynamic_shared() const {
    if (!dynamic_shared_) refuse_to_go_on("a kernel uses dynamic shared memory, but its launch requests none");
    return dynamic_shared_;
  }

 private:
  Machine() = default;

  static constexpr std::size_t stack_bytes = std::size_t{128} << 10, shared_alignment = 128;

  struct Fiber {
    ucontext_t start{};  // its entry point
    Place here{};        // its saved position
    std::unique_ptr<std::byte[]> stack{new std::byte[stack_bytes]};
    bool started = false;
  };
  struct Barrier {
    unsigned arrived = 0, opened = 0;
    Site site{};  // place of the threads that have arrived
  };
  /// A thread of the running block.
  struct Thread {
    Fiber* fiber = nullptr;        // null before it starts
    Barrier* waits_for = nullptr;  // while this has been opened `opened` times
    unsigned opened = 0;
    bool finished = false;
  };

  /// Each lane alternates between two places, so that no lane overwrites a value before the others have read it.
  LOCKSTEP_OPTIMIZED std::uint64_t exchange_bits(unsigned mask, std::uint64_t bits, unsigned from, Site site) {
    if (from >= warp_size) refuse_lane(from, site);
    auto const own = current_;
    auto* const all = exchanged_[exchanges_[own]++ % 2];
    all[own] = bits;
    wait_for_warp(mask, site);
    return all[own / warp_size * warp_size + from];
  }

  /// Threads run in sequence, each up to a barrier that others have not reached.
  LOCKSTEP_OPTIMIZED void run_block() {
    for (unsigned i = 0; i < count_; ++i) threads_[i] = {};
    left_ = count_;
    turn_ = count_ - 1;
    choose();
    threads_[current_].fiber = idle_fiber();
    go_to(*threads_[current_].fiber, scheduler_);
  }
  /// Makes the next thread in sequence the current one, among the threads that can continue.
  LOCKSTEP_OPTIMIZED void choose() {
    for (unsigned tried = 0; tried < count_; ++tried) {
      turn_ = turn_ + 1 < count_ ? turn_ + 1 : 0;
      auto const number = backwards_ ? count_ - 1 - turn_ : turn_;
      auto& next = threads_[number];
      if (next.finished || (next.waits_for && next.waits_for->opened == next.opened)) continue;
      next.waits_for = nullptr;
      current_ = number;
      thread.x = threads.y == 1 ? number : number % threads.x;
      thread.y = threads.y == 1 ? 0 : number / threads.x;
      return;
    }
    fail_of_waiting();
  }
  /// A fiber runs a thread, and then threads that have not started, of this block and of later ones.
  [[noreturn]] LOCKSTEP_OPTIMIZED void live() {
    auto& self = *threads_[current_].fiber;
    for (;;) {
      (*body_)();
      threads_[current_].finished = true;
      if (--left_ > 0) {
        choose();
        auto*& next = threads_[current_].fiber;
        if (!next) {
          next = &self;
          continue;
        }
        idle_[idle_count_++] = &self;
        switch_to(next->here, self.here);
      } else {
        idle_[idle_count_++] = &self;
        switch_to(scheduler_, self.here);
      }
    }
  }
  LOCKSTEP_OPTIMIZED void wait(Barrier& barrier, unsigned expected, Site site) {
    if (barrier.arrived == 0)
      barrier.site = site;
    else if (barrier.site.line != site.line || (barrier.site.file != site.file && !(barrier.site == site)))
      refuse_sites(barrier.site, site);
    if (++barrier.arrived == expected) {
      barrier.arrived = 0;
      ++barrier.opened;
      return;
    }
    auto& self = threads_[current_];
    self.waits_for = &barrier;
    self.opened = barrier.opened;
    choose();
    auto*& next = threads_[current_].fiber;
    if (!next) next = idle_fiber();
    go_to(*next, self.fiber->here);
  }

  LOCKSTEP_OPTIMIZED Fiber* idle_fiber() { return idle_count_ > 0 ? idle_[--idle_count_] : add_fiber(); }
  Fiber* add_fiber() {
    auto* const fiber = fibers_[made_++] = new Fiber;
    getcontext(&fiber->start);
    fiber->start.uc_stack.ss_sp = fiber->stack.get();
    fiber->start.uc_stack.ss_size = stack_bytes;
    makecontext(
        &fiber->start, [] { instance().live(); }, 0);
    return fiber;
  }
  /// Continues the fiber, and saves the running one's position.
  LOCKSTEP_OPTIMIZED void go_to(Fiber& fiber, Place& here) {
    if (fiber.started) return switch_to(fiber.here, here);
    fiber.started = true;
    start(fiber, here);
  }
  /// Uses jumps, because a context switch asks the system for the signal mask each time.
  LOCKSTEP_APART static void switch_to(Place& there, Place& here) {
    if (LOCKSTEP_SAVE_PLACE(here) == 0) jump(there);
  }
  LOCKSTEP_APART static void start(Fiber& fiber, Place& here) {
    if (LOCKSTEP_SAVE_PLACE(here) == 0) setcontext(&fiber.start);
  }
  [[noreturn]] LOCKSTEP_APART static void jump(Place& there) { LOCKSTEP_JUMP(there); }

  /// Reports a deadlock.
  [[noreturn]] void fail_of_waiting() {
    std::string where;
    auto const add = [&](Barrier const& barrier) {
      if (barrier.arrived > 0) where += (where.empty() ? "" : ", ") + name(barrier.site);
    };
    add(block_barrier_);
    for (auto const& barrier : warp_barriers_) add(barrier);
    refuse_to_go_on("threads of a block wait at " + where +
                    " for others, which wait elsewhere, have returned or do not exist");
  }
  [[noreturn]] static void refuse_sites(Site one, Site other) {
    refuse_to_go_on("threads that should meet wait at " + name(one) + " and at " + name(other));
  }
  [[noreturn]] static void refuse_part(Site site) {
    refuse_to_go_on("a warp meets at " + name(site) + " in parts; the emulation knows whole warps only");
  }
  [[noreturn]] static void refuse_lane(unsigned from, Site site) {
    refuse_to_go_on("lane " + std::to_string(from) + " is asked for at " + name(site));
  }
  [[nodiscard]] static std::string name(Site site) { return std::string(site.file) + ":" + std::to_string(site.line); }

  std::mutex mutex_;
  Place scheduler_{};
  Thread threads_[max_threads] = {};  // plain arrays: every wait uses them, also in tests without optimization
  unsigned count_ = 0, left_ = 0;     // threads of the block, and those that have not finished
  unsigned turn_ = 0, current_ = 0;   // position of the running thread in the sequence, and its number
  Fiber *fibers_[max_threads] = {}, *idle_[max_threads] = {};
  unsigned made_ = 0, idle_count_ = 0;
  Barrier block_barrier_, warp_barriers_[max_threads / warp_size];
  std::uint64_t exchanged_[2][max_threads] = {};
  unsigned char exchanges_[max_threads] = {};
  bool backwards_ = true;
  std::function<void()> const* body_ = nullptr;
  std::byte* dynamic_shared_ = nullptr;
};

}  // namespace cuda_emulation
