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

namespace detail {
/// Returns the arguments of this process, with its name first.
[[nodiscard]] inline std::vector<std::string> own_arguments() {
  std::vector<std::string> out;
  std::FILE* const file = std::fopen("/proc/self/cmdline", "rbe");
  if (!file) return out;
  std::string argument;
  for (int c; (c = std::fgetc(file)) != EOF; c == 0 ? argument.clear() : argument.push_back(static_cast<char>(c)))
    if (c == 0) out.push_back(argument);
  std::fclose(file);
  return out;
}
}  // namespace detail

/// Starts `options.nproc` copies of this program as ranks and watches them from the parent until all have ended.
///
/// If one fails, the others learn it from the shared memory and end on their own. Ranks that are still alive after
/// `grace_seconds` get SIGTERM, and SIGKILL half a second later. Signals are passed on; ranks that were requested to
/// stop have unlimited time. If this process dies, the kernel kills the ranks. The thread that constructs this object
/// must outlive them.
class Supervisor {
 public:
  /// @param restarts how often the ranks were started before
  explicit Supervisor(Options const& options, int restarts = 0)
      : options_(options),
        restarts_(restarts),
        output_(options),
        segment_(SharedSegment::between_processes(options.nproc, detail::new_job())),
        control_(segment_->control()) {
    auto const arguments = options.arguments.empty() ? detail::own_arguments() : options.arguments;
    if (arguments.empty())
      throw ConfigError(
          "launch: this program's arguments, which its ranks get, cannot be read from "
          "/proc/self/cmdline; mount /proc, or give them as Options::arguments");
    for (int rank = 0; rank < options.nproc; ++rank) {
      ranks_.spawn(arguments, {rank, options.nproc, ::getpid(), segment_->descriptor(), control_.head.job, restarts},
                   signals_.mask_before(), output_);
      control_[rank].pid.store(ranks_.all().back().pid, std::memory_order_relaxed);
    }
    output_.start();
  }

  /// Returns once all ranks have ended and all their output is passed on. If a callback still blocks `grace_seconds`
  /// after a signal, the signal ends this process.
  /// @returns 0, or the exit code of the rank that failed first: 128 + signal if a signal killed it or requested the
  /// stop
  int watch() {
    using namespace std::chrono_literals;
    while (ranks_.alive() > 0) {
      wait_for_events();
      forward_signals();
      record_ends();
      terminate_remaining_ranks();
      static_cast<void>(output_.wait_finished(0ms));  // rethrows exceptions of callbacks
    }
    auto const failed = control_.first_failure();
    auto const [code, report] = failed < 0 ? success_outcome() : failure_outcome(failed);
    output_.finish(report);
    for (auto until = no_deadline; !output_.wait_finished(20ms);) {
      forward_signals();
      if (forwarded_signal_ == 0) continue;
      if (until == no_deadline) until = deadline_in(options_.grace_seconds);
      if (Clock::nanoseconds() < until) continue;
      ranks_.signal_group(SIGKILL);  // processes that the ranks left running
      signals_.apply_default_effect(forwarded_signal_);
    }
    return code;
  }

  /// Returns, after `watch`, whether `options.max_restarts` allows another try.
  [[nodiscard]] bool should_restart() const noexcept { return should_restart_ && forwarded_signal_ == 0; }

 private:
  struct Outcome {
    int code;
    std::string report;  // empty: nothing to report
  };
  static std::string interruption_text(int signal) {
    return "interrupted by signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
  }
  /// Result if no rank has failed.
  [[nodiscard]] Outcome success_outcome() const {
    return {stop_exit_code_, stop_exit_code_ == 0 ? std::string() : interruption_text(stop_exit_code_ - 128)};
  }
  [[nodiscard]] Outcome failure_outcome(int failed) {
    auto const& record = control_[failed];
    auto const interrupted = forwarded_signal_ != 0 && record.signal == forwarded_signal_;
    auto const code = record.signal != 0 ? 128 + record.signal : record.exit_code;
    // Wrong input is wrong again after a restart.
    should_restart_ = forwarded_signal_ == 0 && code != 2 && restarts_ < options_.max_restarts;
    return {code, (interrupted ? interruption_text(forwarded_signal_) : control_.describe(failed)) +
                      (should_restart_ ? "; all ranks are restarted, " + std::to_string(restarts_ + 1) + " of " +
                                             std::to_string(options_.max_restarts)
                                       : "")};
  }
  void wait_for_events() {
    polled_.assign(1, {signals_.descriptor(), POLLIN, 0});
    for (auto const& process : ranks_.all())
      if (!process.ended) polled_.push_back({process.pidfd, POLLIN, 0});
    ::poll(polled_.data(), polled_.size(), termination_ == Termination::not_started ? 1000 : 20);
  }

  void forward_signals() {
    for (int signal = signals_.next(); signal != 0; signal = signals_.next()) {
      forwarded_signal_ = signal;
      ranks_.signal_each(signal);
    }
  }

  void record_ends() {
    for (std::size_t i = 0; i < ranks_.all().size(); ++i) {
      auto& process = ranks_.all()[i];
      if (process.ended) continue;
      siginfo_t info{};
      // Ranks are not reaped yet: while one remains, the system does not reuse the number of the process group.
      bool const known = ::waitid(P_PID, static_cast<id_t>(process.pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0;
      if (known && info.si_pid == 0) continue;
      process.ended = true;
      auto const rank = static_cast<int>(i);
      if (control_[rank].state.load(std::memory_order_acquire) == detail::RankState::failed)
        continue;  // the rank has recorded its own end
      bool const exited = known && info.si_code == CLD_EXITED;
      if (exited && options_.on_signal == OnSignal::request_stop && StopRequest::is_stop_exit_code(info.si_status)) {
        stop_exit_code_ = info.si_status;
        if (!control_.has_ended(rank)) control_.end(rank, 0);
      } else if (known) {
        control_.end(rank, exited ? info.si_status : 0, exited ? 0 : info.si_status);
      } else if (!control_.has_ended(rank)) {
        control_.end(
            rank, 1, 0,
            "ended in an unknown way, because this process ignores SIGCHLD or waits for all its children elsewhere");
      }
    }
  }

  /// Terminates the remaining ranks, in stages, once a rank has failed.
  void terminate_remaining_ranks() {
    if (control_.first_failure() < 0 || ranks_.alive() == 0) return;
    if (termination_ == Termination::not_started) {
      termination_ = Termination::grace;
      until_ = deadline_in(options_.grace_seconds);
    } else if (Clock::nanoseconds() >= until_) {
      ranks_.signal_group(termination_ == Termination::grace ? SIGTERM : SIGKILL);
      termination_ = Termination::terminated;
      until_ = deadline_in(0.5);
    }
  }

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
