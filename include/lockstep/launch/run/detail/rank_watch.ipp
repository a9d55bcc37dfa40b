// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/launch/run/detail/rank_watch.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

LOCKSTEP_INLINE void learn(ControlPage& control, int rank, StoreLine::Message const& message) {
  if (message.rank < 0 || message.rank >= control.head.size || message.rank == rank) return;
  if (message.what == StoreReply::rank_ended) {
    auto const how = from_store<StoreEnd>(message.value);
    control.end(message.rank, how.exit_code, how.signal, how.message);
  } else if (message.what == StoreReply::rank_lost) {
    control.lose(message.rank);
  }
}

LOCKSTEP_INLINE RankWatch::RankWatch(ControlPage& control, int rank, std::vector<File> peers, Options const& options,
                                     StoreLine* line, bool leads)
    : control_(control),
      rank_(rank),
      options_(options),
      line_(line),
      leads_(leads),
      peers_(std::move(peers)),
      request_(options.on_signal == OnSignal::ask ? std::make_shared<StopRequest>() : nullptr),
      signals_(options.on_signal),
      stop_(::eventfd(0, EFD_CLOEXEC)),
      launcher_(static_cast<int>(::syscall(SYS_pidfd_open, ::getppid(), 0))) {
  if (stop_.get() < 0) throw ConfigError("launch: the system refused to watch the other ranks (eventfd)");
  for (auto const& peer : peers_) here_ += peer.get() >= 0;
  thread_ = start_thread("launch", "the thread that watches the other ranks", [this] { run(); });
}

LOCKSTEP_INLINE RankWatch::~RankWatch() {
  ::eventfd_write(stop_.get(), 1);
  thread_.join();
}

LOCKSTEP_INLINE void RankWatch::tell_end() noexcept {
  if (!line_ || told_.exchange(true)) return;  // as ControlPage::end_itself
  auto const& record = control_[rank_];
  StoreEnd how{record.exit_code, record.signal, {}};
  std::memcpy(how.message, record.message, sizeof how.message);
  try {
    line_->send(StoreCall::ended, {}, store_bytes(how));
  } catch (CommunicationError const&) {  // the store is gone
  }
}

LOCKSTEP_INLINE void RankWatch::hear_all() const {
  auto const all_over = [this] {
    for (int r = 0; r < control_.head.size; ++r)
      if (r != rank_ && !control_.over(r)) return false;
    return true;
  };
  for (auto const until = deadline_in(hear_seconds); !deaf_ && !all_over() && Clock::nanoseconds() < until;)
    ::usleep(1000);
}

LOCKSTEP_INLINE void RankWatch::wait_for_peers() const {
  wait_for_ends([this] { return here_ == 0 || (::usleep(2000), false); });
}

LOCKSTEP_INLINE void RankWatch::report() {
  auto const failed = control_.first_failure();
  bool const alone = deaf_ || control_[rank_].unheard.load(std::memory_order_relaxed);
  bool const speaks = !line_ || rank_ == 0 || (leads_ && alone);  // remote ranks are not asked whether they have
  if (failed < 0 || !options_.report || !speaks || (signal_ != 0 && control_[failed].signal == signal_)) return;
  if (control_.report_once()) options_.report(control_.tell(failed));
}

LOCKSTEP_INLINE void RankWatch::run() {
  std::vector<pollfd> polled;
  for (;;) {
    hear();
    polled = {{stop_.get(), POLLIN, 0}, {signals_.descriptor(), POLLIN, 0}, {launcher_.get(), POLLIN, 0}};
    for (auto const& peer : peers_) polled.push_back({peer.get(), POLLIN, 0});  // poll ignores negative ones
    polled.push_back({line_ && !deaf_ ? line_->descriptor() : -1, POLLIN, 0});
    ::poll(polled.data(), polled.size(), milliseconds_until(until_));
    if (polled[0].revents != 0) return;
    for (std::size_t r = 0; r < peers_.size(); ++r)
      if (polled[r + 3].revents != 0) lose(r);
    for (int signal = signals_.next(); signal != 0; signal = signals_.next()) hear(signal);
    if (polled[2].revents != 0) {
      launcher_ = File();
      be_asked_to_end(SIGTERM);
    }
    if (Clock::nanoseconds() >= until_) end();
  }
}

LOCKSTEP_INLINE void RankWatch::hear() {
  try {
    while (line_ && !deaf_) {
      auto const message = line_->next();
      if (!message) return;
      learn(control_, rank_, *message);
    }
  } catch (Error const&) {
    deaf_ = true;
    if (rank_ != 0 && signal_ == 0) control_.lose(0);  // else the signal has ended it, too
  }
}

LOCKSTEP_INLINE void RankWatch::lose(std::size_t rank) {
  control_.lose(static_cast<int>(rank));
  File const closed = std::exchange(peers_[rank], File());
  --here_;
  report();  // at once: MPICH's mpirun leaves no more time
}

LOCKSTEP_INLINE void RankWatch::hear(int signal) {
  bool const asks = request_ && signal_ == 0 && control_.first_failure() < 0;
  if (!asks || !request_->take(signal)) be_asked_to_end(signal);
}

LOCKSTEP_INLINE void RankWatch::be_asked_to_end(int signal) {
  if (signal_ == 0) until_ = deadline_in(settle_seconds);
  signal_ = signal;
}

LOCKSTEP_INLINE void RankWatch::end() {
  auto const failed = control_.first_failure();
  if (failed < 0) {
    control_.end_itself(rank_, 0, signal_);
    tell_end();
  } else if (!std::exchange(settled_, true)) {
    until_ = deadline_in(options_.grace_seconds);
    return;
  } else {
    report();
  }
  until_ = no_deadline;
  signals_.meet(signal_);
}

}}}  // namespace lockstep::launch::detail
