// SPDX-License-Identifier: Apache-2.0
#include "block.hpp"

#include <memory>
#include <mutex>
#include <new>
#include <string>

#include "../sanitized.hpp"
#include "device.hpp"

#if defined(__x86_64__) && !LOCKSTEP_SANITIZED
/// Saves the running fiber's registers on its stack and the top of that at `here`, and continues the fiber whose top is
/// at `there`. The C library's jumps would leave calls without returns, so that processors mispredict each return of
/// the next fiber.
extern "C" [[gnu::visibility("hidden")]] void lockstep_switch_fibers(void*** here, void** const* there);
asm(R"(.text
.globl lockstep_switch_fibers
.hidden lockstep_switch_fibers
.type lockstep_switch_fibers, @function
lockstep_switch_fibers:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq (%rsi), %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size lockstep_switch_fibers, .-lockstep_switch_fibers
)");
#else
#include <setjmp.h>
#include <ucontext.h>
#endif

namespace cuda_emulation {
namespace {

/// A fiber's saved position.
#if defined(__x86_64__) && !LOCKSTEP_SANITIZED
struct Place {
  void** top = nullptr;

  void begin(std::byte* stack, std::size_t bytes, void (*entry)()) {
    top = reinterpret_cast<void**>(stack + bytes - reinterpret_cast<std::uintptr_t>(stack + bytes) % 16);
    *--top = nullptr;  // the return address of `entry`, which never returns
    *--top = reinterpret_cast<void*>(entry);
    top -= 6;  // registers
  }
  void go_to(Place const& there) { lockstep_switch_fibers(&top, &there.top); }
};
#else
struct Place {
  ucontext_t start{};  // its entry point
  jmp_buf jump{};
  bool started = false;

  void begin(std::byte* stack, std::size_t bytes, void (*entry)()) {
    getcontext(&start);
    start.uc_stack.ss_sp = stack;
    start.uc_stack.ss_size = bytes;
    makecontext(&start, entry, 0);
  }
  /// Uses jumps, because a context switch asks the system for the signal mask each time.
  void go_to(Place const& there) {
    started = true;
    if (_setjmp(jump) != 0) return;
    if (there.started) _longjmp(const_cast<Place&>(there).jump, 1);
    setcontext(&there.start);
  }
};
#endif

bool same(Site one, Site other) noexcept {
  return one.line == other.line && (one.file == other.file || !std::strcmp(one.file, other.file));
}

class Machine {
 public:
  ~Machine() {
    for (unsigned i = 0; i < made_; ++i) delete fibers_[i];
  }
  Machine(Machine const&) = delete;
  Machine& operator=(Machine const&) = delete;

  static Machine& instance() {
    static Machine machine;
    return machine;
  }

  void run(Three grid, Three block_size, std::size_t shared_bytes, Body body) {
    std::lock_guard const lock(mutex_);
    position.blocks = grid;
    position.threads = block_size;
    count_ = block_size.x * block_size.y;
    body_ = body;
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
      position.block = {static_cast<unsigned>(number % grid.x), static_cast<unsigned>(number / grid.x), 0};
      if (shared_bytes > 0) std::memset(shared.memory, 0xff, shared_bytes);  // a block sees no values of other blocks
      run_block();
    }
  }

  void wait_for_block(Site site) { wait(block_barrier_, count_, site); }
  /// Whole warps only: `mask` names the participating lanes.
  void wait_for_warp(unsigned mask, Site site) {
    if (mask != ~0u) refuse_part(site);
    wait(warp_barriers_[current_ / warp_size], warp_size, site);
  }

  std::uint64_t exchange(unsigned mask, std::uint64_t bits, unsigned from, Site site) {
    if (from >= warp_size) refuse_lane(from, site);
    return share(mask, bits, site)[from];
  }
  unsigned ballot(unsigned mask, bool predicate, Site site) {
    auto const* const all = share(mask, predicate ? 1 : 0, site);
    unsigned bits = 0;
    for (unsigned i = 0; i < warp_size; ++i) bits |= static_cast<unsigned>(all[i]) << i;
    return bits;
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
    std::unique_ptr<std::byte[]> stack{new std::byte[stack_bytes]};
    Place here{};

    Fiber() {
      here.begin(stack.get(), stack_bytes, [] { instance().live(); });
    }
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

  /// Stores a value for the other lanes, waits for theirs, and returns those of all lanes. Each lane alternates between
  /// two places, so that no lane overwrites a value before the others have read it.
  std::uint64_t const* share(unsigned mask, std::uint64_t bits, Site site) {
    auto const own = current_;
    auto* const all = exchanged_[exchanges_[own]++ % 2];
    all[own] = bits;
    wait_for_warp(mask, site);
    return all + own / warp_size * warp_size;
  }

  /// Threads run in sequence, each up to a barrier that others have not reached.
  void run_block() {
    for (unsigned i = 0; i < count_; ++i) threads_[i] = {};
    left_ = count_;
    turn_ = count_ - 1;
    choose();
    threads_[current_].fiber = idle_fiber();
    scheduler_.go_to(threads_[current_].fiber->here);
  }
  /// Makes the next thread in sequence the current one, among the threads that can continue.
  void choose() {
    for (unsigned tried = 0; tried < count_; ++tried) {
      turn_ = turn_ + 1 < count_ ? turn_ + 1 : 0;
      auto const number = backwards_ ? count_ - 1 - turn_ : turn_;
      auto& next = threads_[number];
      if (next.finished || (next.waits_for && next.waits_for->opened == next.opened)) continue;
      next.waits_for = nullptr;
      current_ = number;
      auto const& threads = position.threads;
      position.thread.x = threads.y == 1 ? number : number % threads.x;
      position.thread.y = threads.y == 1 ? 0 : number / threads.x;
      return;
    }
    fail_of_waiting();
  }
  /// A fiber runs a thread, and then threads that have not started, of this block and of later ones.
  [[noreturn]] void live() {
    auto& self = *threads_[current_].fiber;
    for (;;) {
      body_.call(body_.kernel, body_.values);
      threads_[current_].finished = true;
      if (--left_ > 0) {
        choose();
        auto*& next = threads_[current_].fiber;
        if (!next) {
          next = &self;
          continue;
        }
        idle_[idle_count_++] = &self;
        self.here.go_to(next->here);
      } else {
        idle_[idle_count_++] = &self;
        self.here.go_to(scheduler_);
      }
    }
  }
  void wait(Barrier& barrier, unsigned expected, Site site) {
    if (barrier.arrived == 0)
      barrier.site = site;
    else if (!same(barrier.site, site))
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
    self.fiber->here.go_to(next->here);
  }

  Fiber* idle_fiber() { return idle_count_ > 0 ? idle_[--idle_count_] : fibers_[made_++] = new Fiber; }

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
  Thread threads_[max_threads] = {};
  unsigned count_ = 0, left_ = 0;    // threads of the block, and those that have not finished
  unsigned turn_ = 0, current_ = 0;  // position of the running thread in the sequence, and its number
  Fiber *fibers_[max_threads] = {}, *idle_[max_threads] = {};
  unsigned made_ = 0, idle_count_ = 0;
  Barrier block_barrier_, warp_barriers_[max_threads / warp_size];
  std::uint64_t exchanged_[2][max_threads] = {};
  unsigned char exchanges_[max_threads] = {};
  bool backwards_ = true;
  Body body_{};
  std::byte* dynamic_shared_ = nullptr;
};

}  // namespace

void run(Three grid, Three block_size, std::size_t shared_bytes, Body body) {
  Machine::instance().run(grid, block_size, shared_bytes, body);
}
void wait_for_block(Site site) { Machine::instance().wait_for_block(site); }
void wait_for_warp(unsigned mask, Site site) { Machine::instance().wait_for_warp(mask, site); }
std::uint64_t exchange_bits(unsigned mask, std::uint64_t bits, unsigned from, Site site) {
  return Machine::instance().exchange(mask, bits, from, site);
}
unsigned ballot(unsigned mask, bool predicate, Site site) { return Machine::instance().ballot(mask, predicate, site); }
unsigned lane() noexcept { return Machine::instance().lane(); }
std::byte* dynamic_shared() { return Machine::instance().dynamic_shared(); }

}  // namespace cuda_emulation
