// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sched.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include <lockstep/launch/shared_memory/detail/rank_record.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch {

/// Largest number of ranks on one host.
inline constexpr int max_local_ranks = 256;

/// Head of the memory that the ranks of one host share: their processes, and the first failure. Ranks that wait read
/// it, so that a wait ends when the awaited rank ends.
struct ControlPage {
  /// Identifies the memory of this run.
  struct Head {
    std::uint64_t magic;  ///< constant that marks memory of Lockstep
    std::uint64_t job;    ///< random number, new for each run
    std::int32_t size;    ///< number of ranks
  };
  Head head;                                              ///< written before the ranks start
  std::atomic<std::int32_t> first_failure_;               ///< rank + 1; 0 before any failure
  std::atomic<std::uint32_t> reported_;                   ///< 1 once a rank reports the first failure
  std::array<detail::RankRecord, max_local_ranks> ranks;  ///< states of the ranks, by rank

  /// Returns the record of a rank in [0, head.size).
  [[nodiscard]] detail::RankRecord& operator[](int rank) noexcept { return ranks[static_cast<std::size_t>(rank)]; }
  /// Returns the record of a rank in [0, head.size).
  [[nodiscard]] detail::RankRecord const& operator[](int rank) const noexcept;

  /// Returns the rank that failed first, or -1.
  [[nodiscard]] int first_failure() const noexcept { return first_failure_.load(std::memory_order_acquire) - 1; }

  /// Marks the rank as running.
  void join(int rank, int pid) noexcept;
  /// Marks a rank on another host as running.
  void join(int rank, int pid, std::string_view host) noexcept;
  /// Marks the rank's work as finished. A rank that ended with an error counts as failed, since others would wait for
  /// it in vain.
  void end(int rank, int exit_code, int signal = 0, std::string_view message = {}) noexcept;
  /// Marks this rank's own end. Two of its threads may call this: a signal handler's and its own. The first call
  /// counts; the other returns once the record is written.
  void end_itself(int rank, int exit_code, int signal = 0, std::string_view message = {}) noexcept;
  /// Marks a rank as lost whose process is gone for an unknown reason. Does nothing if the rank's end is already known.
  void mark_lost(int rank) noexcept;
  /// Returns true for the first caller, which then reports the failure to the user.
  [[nodiscard]] bool report_once() noexcept { return reported_.exchange(1, std::memory_order_acq_rel) == 0; }
  /// Returns true once `end` or `mark_lost` was called for the rank.
  [[nodiscard]] bool has_ended(int rank) const noexcept;

  /// Returns "rank 1 (pid 4242)", or "rank 1 (pid 4242 on node7)" for a rank on another host.
  [[nodiscard]] std::string rank_name(int rank) const;
  /// Returns whether the rank ended with an error of its own that it has reported.
  [[nodiscard]] bool has_reported_error(int rank) const noexcept;
  /// Returns "rank 1 (pid 4242) was killed by signal 9 (Killed)".
  [[nodiscard]] std::string describe(int rank) const;
};

}}}  // namespace lockstep::launch

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/launch/shared_memory/control_page.ipp>
#endif
