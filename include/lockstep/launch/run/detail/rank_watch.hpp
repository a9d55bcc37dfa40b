// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <lockstep/core/start_thread.hpp>
#include <lockstep/launch/detail/file.hpp>
#include <lockstep/launch/detail/store_line.hpp>
#include <lockstep/launch/options.hpp>
#include <lockstep/launch/run/detail/signal_watch.hpp>
#include <lockstep/launch/shared_memory/control_page.hpp>
#include <lockstep/launch/stop_request.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

/// Writes the store's news of a rank other than `rank` to the control page.
inline void learn(ControlPage& control, int rank, StoreLine::Message const& message) {
  if (message.rank < 0 || message.rank >= control.head.size || message.rank == rank) return;
  if (message.what == StoreReply::rank_ended) {
    auto const how = from_store<StoreEnd>(message.value);
    control.end(message.rank, how.exit_code, how.signal, how.message);
  } else if (message.what == StoreReply::rank_lost) {
    control.lose(message.rank);
  }
}

/// Watches the other ranks on a thread of its own, for launchers that report nothing to us. A connection that closes
/// means that a rank is gone; this is written to the control page, which waiting ranks read.
///
/// Launchers end the survivors of a failure with SIGTERM, often before these have reported the cause. SIGTERM therefore
/// takes effect once this rank has reported it, or after a delay. If the launcher itself dies, the rank ends in the
/// same way and does not outlive it. With OnSignal::request_stop the first signal only requests a stop.
class RankWatch {
 public:
  /// @param peers connections by rank; empty files for ranks that are not watched
  /// @param line news of ranks on several hosts, instead of `peers`
  /// @param leads whether this rank reports for its host
  RankWatch(ControlPage& control, int rank, std::vector<File> peers, Options const& options, StoreLine* line = nullptr,
            bool leads = true)
      : control_(control),
        rank_(rank),
        options_(options),
        line_(line),
        leads_(leads),
        peers_(std::move(peers)),
        request_(options.on_signal == OnSignal::request_stop ? std::make_shared<StopRequest>() : nullptr),
        signals_(options.on_signal),
        stop_(::eventfd(0, EFD_CLOEXEC)),
        launcher_(static_cast<int>(::syscall(SYS_pidfd_open, ::getppid(), 0))) {
    if (stop_.get() < 0) throw ConfigError("launch: the system refused to watch the other ranks (eventfd)");
    for (auto const& peer : peers_) here_ += peer.get() >= 0;
    thread_ = start_thread("launch", "the thread that watches the other ranks", [this] { run(); });
  }
  RankWatch(RankWatch const&) = delete;
  RankWatch& operator=(RankWatch const&) = delete;
  ~RankWatch() {
    ::eventfd_write(stop_.get(), 1);
    thread_.join();
  }

  /// Returns the stop request for this rank's world; null with OnSignal::end.
  [[nodiscard]] std::shared_ptr<StopRequest const> request() const noexcept { return request_; }

  /// Sends this rank's end, as it is in the control page, to the other hosts, once.
  void tell_end() noexcept {
    if (!line_ || told_.exchange(true)) return;  // as ControlPage::end_itself
    auto const& record = control_[rank_];
    StoreEnd how{record.exit_code, record.signal, {}};
    std::memcpy(how.message, record.message, sizeof how.message);
    try {
      line_->send(StoreCall::ended, {}, store_bytes(how));
    } catch (CommunicationError const&) {  // the store is gone
    }
  }
  /// Waits until `over()`, on the rank through which the others learn of each other. `over()` must block for a moment.
  /// After a failure waits for at most `grace_seconds`.
  template <class Over>
  void wait_for_ends(Over const& over) const {
    for (auto until = no_deadline; !over() && Clock::nanoseconds() < until;)
      if (until == no_deadline && control_.first_failure() >= 0) until = deadline_in(options_.grace_seconds);
  }
  /// Waits until this rank has received the ends of all others, once the store of this process has sent them.
  void hear_all() const {
    auto const all_over = [this] {
      for (int r = 0; r < control_.head.size; ++r)
        if (r != rank_ && !control_.has_ended(r)) return false;
      return true;
    };
    for (auto const until = deadline_in(hear_seconds); !deaf_ && !all_over() && Clock::nanoseconds() < until;)
      ::usleep(1000);
  }
  void wait_for_peers() const {
    wait_for_ends([this] { return here_ == 0 || (::usleep(2000), false); });
  }
  /// Reports the first failure, if any, unless another rank has. Ignores a rank that the signal to all ranks has ended.
  void report() {
    auto const failed = control_.first_failure();
    bool const alone = deaf_ || control_[rank_].lost_rank_zero.load(std::memory_order_relaxed);
    bool const speaks = !line_ || rank_ == 0 || (leads_ && alone);  // remote ranks are not asked whether they have
    if (failed < 0 || !options_.report || !speaks || (signal_ != 0 && control_[failed].signal == signal_)) return;
    if (control_.report_once()) options_.report(control_.describe(failed));
  }

 private:
  static constexpr double settle_seconds = 0.2;  // from a signal to the news of its cause
  static constexpr double hear_seconds = 2;      // for news from a socket of this process

  void run() {
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

  /// Reads the store's news. If the store's host is gone, so are the ranks there, at least rank 0.
  void hear() {
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
  void lose(std::size_t rank) {
    control_.lose(static_cast<int>(rank));
    File const closed = std::exchange(peers_[rank], File());
    --here_;
    report();  // at once: MPICH's mpirun leaves no more time
  }

  /// Handles a signal. After a failure it is no stop request, since there is no complete state to save.
  void hear(int signal) {
    bool const asks = request_ && signal_ == 0 && control_.first_failure() < 0;
    if (!asks || !request_->take(signal)) be_asked_to_end(signal);
  }
  void be_asked_to_end(int signal) {
    if (signal_ == 0) until_ = deadline_in(settle_seconds);
    signal_ = signal;
  }

  /// Ends this rank after a signal's delay. If another rank has failed, waits once more, so that this rank can report
  /// it.
  void end() {
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

  ControlPage& control_;
  int rank_;
  Options const& options_;
  StoreLine* line_;
  bool leads_;
  std::atomic<bool> deaf_ = false, told_ = false;
  std::atomic<int> here_ = 0;  // number of open peers
  std::vector<File> peers_;
  std::shared_ptr<StopRequest> request_;
  SignalWatch signals_;
  File stop_;
  File launcher_;
  Deadline until_ = no_deadline;
  std::atomic<int> signal_ = 0;
  bool settled_ = false;
  std::thread thread_;
};

}}}  // namespace lockstep::launch::detail
