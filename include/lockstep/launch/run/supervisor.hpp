// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <poll.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <lockstep/core/wait.hpp>
#include <lockstep/launch/detail/job.hpp>
#include <lockstep/launch/options.hpp>
#include <lockstep/launch/run/detail/rank_processes.hpp>
#include <lockstep/launch/run/detail/signal_watch.hpp>
#include <lockstep/launch/shared_memory/shared_segment.hpp>
#include <lockstep/launch/stop_request.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch {

/// Starts `options.nproc` copies of this program as ranks and watches them from the parent until all have ended.
///
/// If one fails, the others learn it from the shared memory and end on their own. Ranks that are still alive after
/// `grace_seconds` get SIGTERM, and SIGKILL half a second later. Signals are passed on; ranks that were requested to
/// stop have unlimited time. If this process dies, the kernel kills the ranks. The thread that constructs this object
/// must outlive them.
class Supervisor {
 public:
  /// @param restarts how often the ranks were started before
  explicit Supervisor(Options const& options, int restarts = 0);

  /// Returns once all ranks have ended and all their output is passed on. If a callback still blocks `grace_seconds`
  /// after a signal, the signal ends this process.
  /// @returns 0, or the exit code of the rank that failed first: 128 + signal if a signal killed it or requested the
  /// stop
  int watch();

  /// Returns, after `watch`, whether `options.max_restarts` allows another try.
  [[nodiscard]] bool should_restart() const noexcept { return should_restart_ && forwarded_signal_ == 0; }

 private:
  struct Outcome {
    int code;
    std::string report;  // empty: nothing to report
  };
  static std::string interruption_text(int signal);
  /// Result if no rank has failed.
  [[nodiscard]] Outcome success_outcome() const;
  [[nodiscard]] Outcome failure_outcome(int failed);
  void wait_for_events();

  void forward_signals();

  void record_ends();

  /// Terminates the remaining ranks, in stages, once a rank has failed.
  void terminate_remaining_ranks();

  enum class Termination { not_started, grace, terminated };

  Options const& options_;
  int restarts_;
  bool should_restart_ = false;
  detail::RankOutput output_;
  detail::SignalWatch signals_{options_.on_signal};  // before the first rank, so that no signal is lost
  std::shared_ptr<SharedSegment> segment_;
  ControlPage& control_;
  detail::RankProcesses ranks_;
  std::vector<pollfd> polled_;
  Termination termination_ = Termination::not_started;
  Deadline until_{};
  int forwarded_signal_ = 0;
  int stop_exit_code_ = 0;  // exit code of ranks that stopped on request
};

}}}  // namespace lockstep::launch

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/launch/run/supervisor.ipp>
#endif
