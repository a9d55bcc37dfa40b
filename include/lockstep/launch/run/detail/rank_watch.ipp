// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/launch/run/detail/rank_watch.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

LOCKSTEP_INLINE void record_notification(ControlPage& control, int rank, StoreConnection::Message const& message) {
  if (message.rank < 0 || message.rank >= control.head.size || message.rank == rank) return;
  if (message.type == StoreReply::rank_ended) {
    auto const how = from_bytes<RankEnd>(message.value);
    control.end(message.rank, how.exit_code, how.signal, peer_text(how.message, max_message_bytes));
  } else if (message.type == StoreReply::rank_lost) {
    control.mark_lost(message.rank);
  }
}

LOCKSTEP_INLINE RankWatch::RankWatch(ControlPage& control, int rank, std::vector<FileDescriptor> peers,
                                     Options const& options, StoreConnection* store, bool reports_for_host)
    : control_(control),
      rank_(rank),
      options_(options),
      store_(store),
      reports_for_host_(reports_for_host),
      peers_(std::move(peers)),
      request_(options.on_signal == OnSignal::request_stop ? std::make_shared<StopRequest>() : nullptr),
      signals_(options.on_signal),
      stop_(::eventfd(0, EFD_CLOEXEC)),
      launcher_pid_(::getppid()),
      launcher_(static_cast<int>(::syscall(SYS_pidfd_open, launcher_pid_, 0))) {
  if (stop_.get() < 0) throw ConfigError("launch: the system refused to watch the other ranks (eventfd)");
  for (auto const& peer : peers_) open_peers_ += peer.get() >= 0;
  thread_ = start_thread("launch", "the thread that watches the other ranks", [this] { run(); });
}

LOCKSTEP_INLINE RankWatch::~RankWatch() {
  ::eventfd_write(stop_.get(), 1);
  thread_.join();
}

LOCKSTEP_INLINE void RankWatch::send_end() noexcept {
  if (!store_ || end_sent_.exchange(true)) return;  // as ControlPage::end_itself
  auto const& record = control_[rank_];
  RankEnd how{record.exit_code, record.signal, {}};
  static_assert(sizeof how.message == sizeof record.message);
  std::memcpy(how.message, record.message, sizeof how.message);
  try {
    store_->send(StoreCall::ended, {}, as_bytes(how));
  } catch (CommunicationError const&) {  // the store is gone
  }
}

LOCKSTEP_INLINE void RankWatch::wait_for_notifications() const {
  auto const all_ended = [this] {
    for (int r = 0; r < control_.head.size; ++r)
      if (r != rank_ && !control_.has_ended(r)) return false;
    return true;
  };
  for (auto const until = deadline_in(notification_seconds);
       !store_disconnected_ && !all_ended() && Clock::nanoseconds() < until;)
    ::usleep(1000);
}

LOCKSTEP_INLINE void RankWatch::wait_for_peers() const {
  wait_for_ends([this] {
    if (open_peers_ == 0) return true;
    ::usleep(2000);
    return false;
  });
}

LOCKSTEP_INLINE void RankWatch::report() {
  auto const failed = control_.first_failure();
  bool const lost_rank_zero = store_disconnected_ || control_[rank_].lost_rank_zero.load(std::memory_order_relaxed);
  bool const may_report =
      !store_ || rank_ == 0 || (reports_for_host_ && lost_rank_zero);  // remote ranks are not asked whether they have
  if (failed < 0 || !options_.report || !may_report || (signal_ != 0 && control_[failed].signal == signal_)) return;
  if (control_.report_once()) options_.report(control_.describe(failed));
}

LOCKSTEP_INLINE void RankWatch::report_on_thread() noexcept {
  auto const instead = [this](char const* what) {
    std::fprintf(stderr, "%s: %s\n%s: launch: Options::report has thrown: %s\n", program_invocation_short_name,
                 control_.describe(control_.first_failure()).c_str(), program_invocation_short_name, what);
  };
  try {
    report();
  } catch (std::exception const& error) {
    instead(error.what());
  } catch (...) {
    instead("an exception of unknown type");
  }
}

LOCKSTEP_INLINE void RankWatch::run() {
  std::vector<pollfd> polled;
  for (;;) {
    read_notifications();
    polled = {{stop_.get(), POLLIN, 0}, {signals_.descriptor(), POLLIN, 0}, {launcher_.get(), POLLIN, 0}};
    for (auto const& peer : peers_) polled.push_back({peer.get(), POLLIN, 0});  // poll ignores negative ones
    polled.push_back({store_ && !store_disconnected_ ? store_->descriptor() : -1, POLLIN, 0});
    bool const polls_launcher = launcher_.get() < 0 && !launcher_ended_;  // on a system without pidfd_open
    auto const timeout = milliseconds_until(until_);
    ::poll(polled.data(), polled.size(), polls_launcher && (timeout < 0 || timeout > 500) ? 500 : timeout);
    if (polled[0].revents != 0) return;
    for (std::size_t r = 0; r < peers_.size(); ++r)
      if (polled[r + 3].revents != 0) close_peer(r);
    for (int signal = signals_.next(); signal != 0; signal = signals_.next()) handle_signal(signal);
    if (polled[2].revents != 0 || (polls_launcher && ::getppid() != launcher_pid_)) {
      launcher_ended_ = true;
      launcher_ = FileDescriptor();
      request_stop(SIGTERM);
    }
    if (Clock::nanoseconds() >= until_) end_rank();
  }
}

LOCKSTEP_INLINE void RankWatch::read_notifications() {
  try {
    while (store_ && !store_disconnected_) {
      auto const message = store_->next();
      if (!message) return;
      record_notification(control_, rank_, *message);
    }
  } catch (Error const&) {
    store_disconnected_ = true;
    if (rank_ != 0 && signal_ == 0) control_.mark_lost(0);  // else the signal has ended it, too
  }
}

LOCKSTEP_INLINE void RankWatch::close_peer(std::size_t rank) {
  control_.mark_lost(static_cast<int>(rank));
  FileDescriptor const closed = std::exchange(peers_[rank], FileDescriptor());
  --open_peers_;
  report_on_thread();  // at once: MPICH's mpirun leaves no more time
}

LOCKSTEP_INLINE void RankWatch::handle_signal(int signal) {
  bool const may_stop = request_ && signal_ == 0 && control_.first_failure() < 0;
  if (!may_stop || !request_->handle(signal)) request_stop(signal);
}

LOCKSTEP_INLINE void RankWatch::request_stop(int signal) {
  if (signal_ == 0) until_ = deadline_in(cause_seconds);
  signal_ = signal;
}

LOCKSTEP_INLINE void RankWatch::end_rank() {
  auto const failed = control_.first_failure();
  if (failed < 0) {
    control_.end_itself(rank_, 0, signal_);
    send_end();
  } else if (!std::exchange(waited_for_cause_, true)) {
    until_ = deadline_in(options_.grace_seconds);
    return;
  } else {
    report_on_thread();
  }
  until_ = no_deadline;
  signals_.apply_default_effect(signal_);
}

}}}  // namespace lockstep::launch::detail
