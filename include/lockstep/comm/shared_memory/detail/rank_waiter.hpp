// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>

#include <lockstep/comm/detail/descriptor.hpp>
#include <lockstep/comm/shared_memory/detail/group_memory.hpp>
#include <lockstep/core/clock.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/launch/wait_limits.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm::detail {

/// Waits for other ranks, and reports those that are late or lost.
class RankWaiter {
 public:
  using CounterOf = Counter RankBlock::*;

  struct Settings {
    launch::WaitLimits limits;
    std::function<void(std::string const&)> warn;
    bool is_part = false;  // of a communicator that was split: another part may be called instead
  };

  RankWaiter(GroupMemory const& memory, int rank, Settings settings)
      : memory_(&memory), rank_(rank), size_(memory.size()), settings_(std::move(settings)) {}

  [[nodiscard]] Settings const& settings() const noexcept { return settings_; }

  /// Returns whether the counters of all other ranks have reached the target. If not, `wait` waits for the first that
  /// has not.
  bool all_reached(CounterOf counter, std::uint32_t target) noexcept;

  /// Returns whether all other ranks have posted the operation. If not, `wait` waits for the first that has not.
  bool all_posted(std::uint32_t number) noexcept;

  /// Sleeps until the counter that `all_reached` last found too low has reached its target.
  /// @throws RankLost if a rank has failed, or the awaited one has exited; RankStalled after the limit;
  /// CollectiveMismatch if a rank has posted another operation
  void wait(std::uint32_t number, Descriptor const& operation);

  /// Compares the operation with the requests of all ranks that have posted it. @throws CollectiveMismatch
  void throw_if_mismatched(std::uint32_t number, Descriptor const& mine) const;

  /// Reports the last operations of each rank, once per group. Skips this if a lost rank has reported its own cause.
  void report_history(CommunicationError const& error) const;

  /// Returns a line for each rank: "rank 1 (pid 2): 6 all_reduce of 4 float32 (sum, 0 piggybacked scalars) 1.203 s ago;
  /// 7 barrier 0.020 s ago, under way".
  [[nodiscard]] std::string history(std::uint32_t last = history_in_error) const;

 private:
  static constexpr double check_seconds = 0.02;           // interval at which a sleeping rank checks for lost ranks
  static constexpr std::uint32_t history_in_error = 16;   // operations of each rank in an error
  static constexpr std::uint32_t history_in_warning = 4;  // operations of each rank in a warning

  struct Blocked {
    CounterOf counter = &RankBlock::posted;
    std::uint32_t target = 0;
    int rank = 0;
  };

  [[nodiscard]] launch::ControlPage const& control() const noexcept { return memory_->control(); }
  [[nodiscard]] std::string rank_name(int rank) const { return control().rank_name(memory_->run_rank(rank)); }
  [[nodiscard]] Signal<Sharing::processes>& signal(int rank, CounterOf counter) const noexcept;
  static std::string rounded(double seconds) { return std::to_string(std::lround(seconds)); }

  /// Returns "rank 0 (pid 1) has waited 10 s in operation 7 (barrier) for rank 1 (pid 2), last seen in operation 6
  /// (barrier)".
  [[nodiscard]] std::string describe_wait(std::uint32_t number, Descriptor const& operation, double waited) const;

  /// Returns the remedy if ranks may wait for each other in different parts of a communicator; else nothing.
  [[nodiscard]] char const* remedy() const noexcept {
    return settings_.is_part
               ? "; this communicator is a part made by split: call all parts in the same order on all ranks"
               : "";
  }

  [[noreturn]] void throw_lost(std::uint32_t number, Descriptor const& operation) const;

  GroupMemory const* memory_;
  int rank_, size_;
  Settings settings_;
  Blocked blocked_;
};

}}}  // namespace lockstep::comm::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/comm/shared_memory/detail/rank_waiter.ipp>
#endif
