// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "matrices.hpp"
#include "thread.hpp"

/// Runs kernels compiled by nvcc, one instruction at a time: blocks in sequence, and the threads of a block in an
/// arbitrary order between barriers. The order is equal in every run.
namespace ptx {

class Machine {
 public:
  static Machine& instance() {
    static Machine machine;
    return machine;
  }
  void add(Module const& module) { block_.modules.push_back(&module); }

  void run(Function const& kernel, Extent blocks, Extent threads, std::vector<std::byte> parameters,
           std::size_t dynamic_shared_bytes = 0) {
    std::lock_guard const lock(Regions::mutex());
    block_.dynamic_shared_bytes = dynamic_shared_bytes;
    block_.kernel = &kernel;
    block_.blocks = blocks;
    block_.threads = threads;
    block_.parameters = std::move(parameters);
    ++block_.launch;
    count_ = threads.x * threads.y * threads.z;
    while (threads_.size() < count_) threads_.push_back(std::make_unique<Thread>());
    auto& at = block_.at;
    for (at.z = 0; at.z < blocks.z; ++at.z)
      for (at.y = 0; at.y < blocks.y; ++at.y)
        for (at.x = 0; at.x < blocks.x; ++at.x) {
          block_.number = at.x + blocks.x * (at.y + blocks.y * at.z);
          run_block();
        }
  }

 private:
  using State = Thread::State;

  void run_block() {
    block_.in_flight.clear();
    for (std::uint32_t i = 0; i < count_; ++i) threads_[i]->start(block_, i);
    for (;;) {
      bool progress = false;
      auto const first = static_cast<std::uint32_t>(random() % count_);
      auto const stride = random() % 2 == 0 ? 1 : count_ - 1;
      for (std::uint32_t i = 0; i < count_; ++i) {
        auto& thread = *threads_[(first + i * stride) % count_];
        if (thread.state() != State::ready) continue;
        thread.run();
        progress = true;
      }
      for (std::uint32_t begin = 0; begin < count_; begin += 32) progress |= meet_warp(begin);
      auto const waiting = in(State::at_barrier), done = in(State::done);
      if (done == count_) return count();
      if (waiting + done == count_)
        meet_block(waiting);
      else if (!progress)
        fail_of_waiting();
    }
  }
  void count() const {
    if (!Counts::instance().wanted()) return;
    std::uint64_t steps = 0;
    for (std::uint32_t i = 0; i < count_; ++i) steps += threads_[i]->steps();
    Counts::instance().end_block(block_.kernel->name, steps, [&](auto const& each) { return block_.place(each); });
  }
  [[nodiscard]] std::uint32_t in(State state) const {
    return static_cast<std::uint32_t>(std::count_if(threads_.begin(), threads_.begin() + count_,
                                                    [=](auto const& thread) { return thread->state() == state; }));
  }
  [[noreturn]] void fail_of_waiting() const {
    std::string where;
    for (std::uint32_t i = 0; i < count_ && where.size() < 1000; ++i)
      if (threads_[i]->state() != State::done)
        where += " " + std::to_string(i) + " at " + block_.place(threads_[i]->instruction());
    fail(block_.kernel->name + ": threads wait for others that do not come:" + where);
  }

  void meet_block(std::uint32_t waiting) {
    Instruction const* first = nullptr;
    bool all = true, any = false;
    auto const for_each = [&](auto const& f) {
      for (std::uint32_t i = 0; i < count_; ++i)
        if (threads_[i]->state() == State::at_barrier) f(*threads_[i]);
    };
    for_each([&](Thread& thread) {
      auto const& instruction = thread.instruction();
      if (!first) first = &instruction;
      if (&instruction != first)
        block_.find("threads of a block meet at " + block_.place(*first) + " and at " + block_.place(instruction));
      if (instruction.op != Op::bar_red) return;
      bool const value = (thread.value(instruction.from_operands[1]) & 1) != 0;
      all &= value, any |= value;
    });
    if (waiting != count_)
      block_.find("some threads of a block have returned when others meet at " + block_.place(*first));
    for_each([&](Thread& thread) {
      if (first->op == Op::bar_red) thread.set(first->to[0], first->mode == Mode::or_ ? any : all);
      thread.go_on(true, false);
    });
  }

  /// Releases lanes of a warp that have all arrived; returns whether any did.
  bool meet_warp(std::uint32_t begin) {
    auto const end = std::min(begin + 32, count_);
    bool progress = false;
    for (auto i = begin; i < end; ++i) {
      if (threads_[i]->state() != State::at_warp) continue;
      auto const& instruction = threads_[i]->instruction();
      auto const where = [&] { return block_.place(instruction); };
      auto const mask = named_by(*threads_[i], instruction);
      if ((mask >> (i - begin) & 1u) == 0) block_.find("a lane is none of those that it meets at " + where());
      bool all = true;
      for (std::uint32_t lane = 0; lane < 32; ++lane) {
        if ((mask >> lane & 1u) == 0) continue;
        auto const* const other = begin + lane < end ? threads_[begin + lane].get() : nullptr;
        if (!other || other->state() == State::done)
          block_.find("a lane has returned, or does not exist, that others wait for at " + where());
        else
          all = all && other->state() == State::at_warp && &other->instruction() == &instruction;
      }
      if (!all) continue;
      exchange(begin, mask, instruction);
      progress = true;
    }
    return progress;
  }
  static std::uint32_t named_by(Thread const& thread, Instruction const& instruction) {
    if (is_of_matrices(instruction.op)) return ~0u;
    auto const operand = instruction.op == Op::shfl ? 3 : instruction.op == Op::bar_warp ? 0 : 1;
    return static_cast<std::uint32_t>(thread.value(instruction.from_operands[operand]));
  }
  void exchange(std::uint32_t begin, std::uint32_t mask, Instruction const& instruction) {
    std::uint32_t values[32] = {}, ballot = 0;
    std::optional<std::uint64_t> reduced;
    auto const for_lanes = [&](auto const& f) {
      for (std::uint32_t lane = 0; lane < 32 && begin + lane < count_; ++lane)
        if ((mask >> lane & 1u) != 0 && threads_[begin + lane]->state() == State::at_warp)
          f(lane, *threads_[begin + lane]);
    };
    if (is_of_matrices(instruction.op)) {
      Lanes lanes{};
      for_lanes([&](std::uint32_t lane, Thread& thread) { lanes[lane] = &thread; });
      if (std::count(lanes.begin(), lanes.end(), nullptr) > 0)
        fail(block_.kernel->name + ": a partial warp computes with matrices at " + block_.place(instruction));
      on_matrices(instruction, lanes);
      if (instruction.op == Op::mma && Counts::instance().wanted())
        Counts::instance().note_product(block_.kernel->name);
    } else if (instruction.op != Op::bar_warp) {
      for_lanes([&](std::uint32_t lane, Thread& thread) {
        values[lane] = static_cast<std::uint32_t>(thread.value(instruction.from_operands[0]));
        ballot |= (values[lane] & 1u) << lane;
        if (instruction.op == Op::redux) reduced = reduced ? joined(instruction, *reduced, values[lane]) : values[lane];
      });
    }
    for_lanes([&](std::uint32_t lane, Thread& thread) {
      if (instruction.op == Op::vote) {
        auto const result = instruction.mode == Mode::ballot ? ballot
                            : instruction.mode == Mode::any  ? static_cast<std::uint32_t>(ballot != 0)
                                                             : static_cast<std::uint32_t>(ballot == mask);
        thread.set(instruction.to[0], result);
      } else if (instruction.op == Op::shfl) {
        auto const b = static_cast<std::uint32_t>(thread.value(instruction.from_operands[1]));
        auto const c = static_cast<std::uint32_t>(thread.value(instruction.from_operands[2]));
        auto const [from, within] = taken_from(instruction.mode, lane, b, c);
        if ((mask >> from & 1u) == 0)
          block_.find("a lane takes the value of one that is none of those it meets at " + block_.place(instruction));
        thread.set(instruction.to[0], values[from]);
        thread.set(instruction.also_to, within);
      } else if (instruction.op == Op::redux) {
        thread.set(instruction.to[0], *reduced);
      }
    });
    // Instructions other than bar.warp exchange registers, and do not order memory accesses.
    for_lanes([&](std::uint32_t, Thread& thread) { thread.go_on(false, instruction.op == Op::bar_warp); });
  }

  std::uint64_t random() noexcept {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    return random_ >> 33;
  }

  Block block_;
  std::uint32_t count_ = 0;  // threads of a block
  std::vector<std::unique_ptr<Thread>> threads_;
  std::uint64_t random_ = 1;
};

}  // namespace ptx
