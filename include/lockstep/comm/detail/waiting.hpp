// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <functional>
#include <string>

#include <lockstep/comm/detail/describe.hpp>
#include <lockstep/comm/detail/group_memory.hpp>
#include <lockstep/core/clock.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/launch/world.hpp>

namespace lockstep::inline LOCKSTEP_ABI::comm::detail {

/// How a rank waits for others, and what it says when they do not come.
class Waiting {
 public:
  using CounterOf = Counter RankBlock::*;

  Waiting(GroupMemory const& memory, launch::World const& world)
      : memory_(&memory), rank_(world.rank), size_(world.size), limits_(world.limits), warn_(world.warn) {}

  /// Whether the counters of all other ranks have reached the target; if not, `wait` waits for the first that has not.
  bool all_reached(CounterOf counter, std::uint32_t target) noexcept {
    for (int r = 0; r < size_; ++r) {
      if (r == rank_ || reached(signal(r, counter).load(), target)) continue;
      blocked_ = {counter, target, r};
      return false;
    }
    return true;
  }

  /// Returns when the counter that `all_reached` last missed has reached its target.
  /// @throws RankLost when a rank has failed, or the awaited one has ended; RankStalled after the limit
  void wait(std::uint32_t number, Descriptor const& operation) {
    auto const holds = [target = blocked_.target](std::uint32_t value) { return reached(value, target); };
    auto& awaited = signal(blocked_.rank, blocked_.counter);
    auto const since = Clock::seconds();
    for (bool warned = false; !awaited.wait(holds, deadline_in(look_seconds));) {
      if (memory_->control().first_failure() >= 0 || memory_->control().over(blocked_.rank)) {
        if (holds(awaited.load())) return;  // it had done its part before
        throw_lost(number, operation);
      }
      auto const waited = Clock::seconds() - since;
      if (waited > limits_.stall_seconds)
        throw RankStalled(blocked_.rank, tell(number, operation, waited) + ". It is alive; the limit of " +
                                             whole(limits_.stall_seconds) + " s is over");
      if (warned || waited < limits_.warn_seconds) continue;
      warned = true;
      bool const first =
          memory_->block(0).warned.exchange(number + 1) != number + 1;  // one warning, however many ranks
      if (warn_ && first) warn_(tell(number, operation, waited) + ". It is alive; still waiting");
    }
  }

  [[noreturn]] void throw_mismatch(std::uint32_t number, Descriptor const& mine) const {
    std::string others;
    for (int r = 0; r < size_; ++r) {
      auto const& other = memory_->block(r).slot[number % RankBlock::slots].descriptor;
      if (r != rank_ && !same(mine, other)) others += "; " + control().who(r) + " in " + describe(other);
    }
    throw CollectiveMismatch("the ranks disagree in operation " + std::to_string(number) + ": " + control().who(rank_) +
                             " is in " + describe(mine) + others +
                             ". All ranks must call the same operations in the same order");
  }

 private:
  static constexpr double look_seconds = 0.02;  // how soon a sleeper notices that a rank is gone

  struct Blocked {
    CounterOf counter = &RankBlock::posted;
    std::uint32_t target = 0;
    int rank = 0;
  };

  [[nodiscard]] launch::ControlPage const& control() const noexcept { return memory_->control(); }
  [[nodiscard]] Signal<Sharing::processes>& signal(int rank, CounterOf counter) const noexcept {
    return (memory_->block(rank).*counter).signal;
  }
  static std::string whole(double seconds) { return std::to_string(std::lround(seconds)); }

  /// "rank 0 (pid 1) has waited 10 s in operation 7 (barrier) for rank 1 (pid 2), last seen in operation 6 (barrier)"
  [[nodiscard]] std::string tell(std::uint32_t number, Descriptor const& operation, double waited) const {
    std::string missing;
    for (int r = 0; r < size_; ++r) {
      auto const posted = signal(r, &RankBlock::posted).load();
      if (r == rank_ || reached(signal(r, blocked_.counter).load(), blocked_.target)) continue;
      missing += (missing.empty() ? "" : ", and for ") + control().who(r);
      if (posted == 0)
        missing += ", which has taken part in no operation yet";
      else
        missing += ", last seen in operation " + std::to_string(posted - 1) + " (" +
                   describe(memory_->block(r).slot[(posted - 1) % RankBlock::slots].descriptor) + ")";
    }
    return control().who(rank_) + " has waited " + whole(waited) + " s in operation " + std::to_string(number) + " (" +
           describe(operation) + ") for " + missing;
  }

  [[noreturn]] void throw_lost(std::uint32_t number, Descriptor const& operation) const {
    auto const failed = control().first_failure();
    auto const lost = failed >= 0 ? failed : blocked_.rank;
    throw RankLost(lost, control().tell(lost) + "; " + control().who(rank_) + " was waiting in operation " +
                             std::to_string(number) + " (" + describe(operation) + ")");
  }

  GroupMemory const* memory_;
  int rank_, size_;
  launch::WaitLimits limits_;
  std::function<void(std::string const&)> warn_;
  Blocked blocked_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::comm::detail
