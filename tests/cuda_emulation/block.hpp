// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <setjmp.h>
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

  void wait_for_block(Site site) { wait(block_barrier_, count(), site); }
  /// Whole warps only: `mask` names the participating lanes.
  void wait_for_warp(unsigned mask, Site site) {
    if (mask != ~0u)
      refuse_to_go_on("a warp meets at " + name(site) + " in parts; the emulation knows whole warps only");
    wait(warp_barriers_[current_ / warp_size], warp_size, site);
  }

  /// Every lane stores a value and then reads another lane's.
  template <class T>
  T exchange(unsigned mask, T value, unsigned from, Site site) {
    static_assert(sizeof(T) <= sizeof(std::uint64_t));
    if (from >= warp_size) refuse_to_go_on("lane " + std::to_string(from) + " is asked for at " + name(site));
    auto* const warp = &exchanged_[current_ / warp_size * warp_size];
    std::memcpy(&warp[current_ % warp_size], &value, sizeof value);
    wait_for_warp(mask, site);
    std::memcpy(&value, &warp[from], sizeof value);
    wait_for_warp(mask, site);
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
    jmp_buf here;        // its saved position
    std::unique_ptr<std::byte[]> stack{new std::byte[stack_bytes]};
    bool started = false, finished = true;
  };
  struct Barrier {
    unsigned arrived = 0, opened = 0;
    Site site{};  // place of the threads that have arrived
  };

  [[nodiscard]] unsigned count() const noexcept { return threads.x * threads.y; }

  void run_block() {
    auto const threads_in_all = count();
    while (made_ < threads_in_all) add_fiber();
    for (unsigned i = 0; i < threads_in_all; ++i) fibers_[i]->finished = false;
    for (unsigned left = threads_in_all; left > 0;) {
      auto const before = progress_;
      for (unsigned i = 0; i < threads_in_all; ++i) {
        current_ = backwards_ ? threads_in_all - 1 - i : i;
        auto& fiber = *fibers_[current_];
        if (fiber.finished) continue;
        thread = {current_ % threads.x, current_ / threads.x, 0};
        resume(fiber);
        if (fiber.finished) --left, ++progress_;
      }
      if (progress_ == before) fail_of_waiting();
    }
  }
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

  void add_fiber() {
    auto& fiber = *(fibers_[made_++] = new Fiber);
    getcontext(&fiber.start);
    fiber.start.uc_stack.ss_sp = fiber.stack.get();
    fiber.start.uc_stack.ss_size = stack_bytes;
    makecontext(
        &fiber.start, [] { instance().live(); }, 0);
  }
  /// Uses jumps, because a context switch asks the system for the signal mask each time.
  void resume(Fiber& fiber) {
    if (_setjmp(scheduler_) != 0) return;
    if (fiber.started) _longjmp(fiber.here, 1);
    fiber.started = true;
    setcontext(&fiber.start);
  }
  void leave() {
    if (_setjmp(fibers_[current_]->here) == 0) _longjmp(scheduler_, 1);
  }
  /// A fiber runs a thread of each block in sequence.
  [[noreturn]] void live() {
    for (;;) {
      (*body_)();
      fibers_[current_]->finished = true;
      leave();
    }
  }

  void wait(Barrier& barrier, unsigned expected, Site site) {
    if (barrier.arrived == 0)
      barrier.site = site;
    else if (!(barrier.site == site))
      refuse_to_go_on("threads that should meet wait at " + name(barrier.site) + " and at " + name(site));
    auto const opened = barrier.opened;
    if (++barrier.arrived == expected) {
      barrier.arrived = 0;
      ++barrier.opened;
      ++progress_;
    } else {
      while (barrier.opened == opened) leave();
    }
  }

  [[nodiscard]] static std::string name(Site site) { return std::string(site.file) + ":" + std::to_string(site.line); }

  std::mutex mutex_;
  jmp_buf scheduler_;
  Fiber* fibers_[max_threads] = {};  // plain pointers: every wait uses them, also in tests without optimization
  unsigned made_ = 0;                // number of created fibers
  Barrier block_barrier_, warp_barriers_[max_threads / warp_size];
  std::uint64_t exchanged_[max_threads] = {};
  std::uint64_t progress_ = 0;
  unsigned current_ = 0;
  bool backwards_ = true;
  std::function<void()> const* body_ = nullptr;
  std::byte* dynamic_shared_ = nullptr;
};

}  // namespace cuda_emulation
