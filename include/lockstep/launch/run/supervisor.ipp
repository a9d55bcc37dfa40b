// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/launch/run/supervisor.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch {

LOCKSTEP_INLINE Supervisor::Supervisor(Options const& options, int restarts)
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

LOCKSTEP_INLINE int Supervisor::watch() {
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

LOCKSTEP_INLINE std::string Supervisor::interruption_text(int signal) {
  return "interrupted by signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
}

LOCKSTEP_INLINE Supervisor::Outcome Supervisor::success_outcome() const {
  return {stop_exit_code_, stop_exit_code_ == 0 ? std::string() : interruption_text(stop_exit_code_ - 128)};
}

LOCKSTEP_INLINE Supervisor::Outcome Supervisor::failure_outcome(int failed) {
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

LOCKSTEP_INLINE void Supervisor::wait_for_events() {
  polled_.assign(1, {signals_.descriptor(), POLLIN, 0});
  for (auto const& process : ranks_.all())
    if (!process.ended) polled_.push_back({process.pidfd, POLLIN, 0});
  bool const often = termination_ != Termination::not_started || ranks_.must_be_polled();
  ::poll(polled_.data(), polled_.size(), often ? 20 : 1000);
}

LOCKSTEP_INLINE void Supervisor::forward_signals() {
  for (int signal = signals_.next(); signal != 0; signal = signals_.next()) {
    forwarded_signal_ = signal;
    ranks_.signal_each(signal);
  }
}

LOCKSTEP_INLINE void Supervisor::record_ends() {
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
      // A rank that another rank's signal has stopped ends as after SIGTERM.
      if (stop_exit_code_ == 0 || info.si_status != 128 + SIGTERM) stop_exit_code_ = info.si_status;
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

LOCKSTEP_INLINE void Supervisor::terminate_remaining_ranks() {
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

}}}  // namespace lockstep::launch
