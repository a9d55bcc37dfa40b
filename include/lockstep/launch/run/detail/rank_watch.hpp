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
#include <lockstep/launch/detail/file_descriptor.hpp>
#include <lockstep/launch/detail/store_connection.hpp>
#include <lockstep/launch/options.hpp>
#include <lockstep/launch/run/detail/signal_watch.hpp>
#include <lockstep/launch/shared_memory/control_page.hpp>
#include <lockstep/launch/stop_request.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

/// Writes the store's notification about a rank other than `rank` to the control page.
inline void record_notification(ControlPage& control, int rank, StoreConnection::Message const& message) {
  if (message.rank < 0 || message.rank >= control.head.size || message.rank == rank) return;
  if (message.type == StoreReply::rank_ended) {
    auto const how = from_bytes<RankEnd>(message.value);
    control.end(message.rank, how.exit_code, how.signal, how.message);
  } else if (message.type == StoreReply::rank_lost) {
    control.mark_lost(message.rank);
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
  /// @param store notifications about ranks on several hosts, instead of `peers`
  /// @param reports_for_host whether this rank reports for its host
  RankWatch(ControlPage& control, int rank, std::vector<FileDescriptor> peers, Options const& options,
            StoreConnection* store = nullptr, bool reports_for_host = true)
      : control_(control),
        rank_(rank),
        options_(options),
        store_(store),
        reports_for_host_(reports_for_host),
        peers_(std::move(peers)),
        request_(options.on_signal == OnSignal::request_stop ? std::make_shared<StopRequest>() : nullptr),
        signals_(options.on_signal),
        stop_(::eventfd(0, EFD_CLOEXEC)),
        launcher_(static_cast<int>(::syscall(SYS_pidfd_open, ::getppid(), 0))) {
    if (stop_.get() < 0) throw ConfigError("launch: the system refused to watch the other ranks (eventfd)");
    for (auto const& peer : peers_) open_peers_ += peer.get() >= 0;
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
  void send_end() noexcept {
    if (!store_ || end_sent_.exchange(true)) return;  // as ControlPage::end_itself
    auto const& record = control_[rank_];
    RankEnd how{record.exit_code, record.signal, {}};
    std::memcpy(how.message, record.message, sizeof how.message);
    try {
      store_->send(StoreCall::ended, {}, as_bytes(how));
    } catch (CommunicationError const&) {  // the store is gone
    }
  }
  /// Waits until `all_ended()`, on the rank through which the others learn of each other. `all_ended()` must block for
  /// a moment. After a failure waits for at most `grace_seconds`.
  template <class AllEnded>
  void wait_for_ends(AllEnded const& all_ended) const {
    for (auto until = no_deadline; !all_ended() && Clock::nanoseconds() < until;)
      if (until == no_deadline && control_.first_failure() >= 0) until = deadline_in(options_.grace_seconds);
  }
  /// Waits until this rank has received the ends of all others, once the store of this process has sent them.
  void wait_for_notifications() const {
    auto const all_ended = [this] {
      for (int r = 0; r < control_.head.size; ++r)
        if (r != rank_ && !control_.has_ended(r)) return false;
      return true;
    };
    for (auto const until = deadline_in(notification_seconds);
         !store_disconnected_ && !all_ended() && Clock::nanoseconds() < until;)
      ::usleep(1000);
  }
  void wait_for_peers() const {
    wait_for_ends([this] { return open_peers_ == 0 || (::usleep(2000), false); });
  }
  /// Reports the first failure, if any, unless another rank has. Ignores a rank that the signal to all ranks has ended.
  void report() {
    auto const failed = control_.first_failure();
    bool const lost_rank_zero = store_disconnected_ || control_[rank_].lost_rank_zero.load(std::memory_order_relaxed);
    bool const may_report =
        !store_ || rank_ == 0 || (reports_for_host_ && lost_rank_zero);  // remote ranks are not asked whether they have
    if (failed < 0 || !options_.report || !may_report || (signal_ != 0 && control_[failed].signal == signal_)) return;
    if (control_.report_once()) options_.report(control_.describe(failed));
  }

 private:
  static constexpr double cause_seconds = 0.2;       // from a signal to the notification of its cause
  static constexpr double notification_seconds = 2;  // for notifications from a socket of this process

  void run() {
    std::vector<pollfd> polled;
    for (;;) {
      read_notifications();
      polled = {{stop_.get(), POLLIN, 0}, {signals_.descriptor(), POLLIN, 0}, {launcher_.get(), POLLIN, 0}};
      for (auto const& peer : peers_) polled.push_back({peer.get(), POLLIN, 0});  // poll ignores negative ones
      polled.push_back({store_ && !store_disconnected_ ? store_->descriptor() : -1, POLLIN, 0});
      ::poll(polled.data(), polled.size(), milliseconds_until(until_));
      if (polled[0].revents != 0) return;
      for (std::size_t r = 0; r < peers_.size(); ++r)
        if (polled[r + 3].revents != 0) close_peer(r);
      for (int signal = signals_.next(); signal != 0; signal = signals_.next()) handle_signal(signal);
      if (polled[2].revents != 0) {
        launcher_ = FileDescriptor();
        request_stop(SIGTERM);
      }
      if (Clock::nanoseconds() >= until_) end_rank();
    }
  }

  /// Reads the store's notifications. If the store's host is gone, so are the ranks there, at least rank 0.
  void read_notifications() {
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
  void close_peer(std::size_t rank) {
    control_.mark_lost(static_cast<int>(rank));
    FileDescriptor const closed = std::exchange(peers_[rank], FileDescriptor());
    --open_peers_;
    report();  // at once: MPICH's mpirun leaves no more time
  }

  /// Handles a signal. After a failure it is no stop request, since there is no complete state to save.
  void handle_signal(int signal) {
    bool const may_stop = request_ && signal_ == 0 && control_.first_failure() < 0;
    if (!may_stop || !request_->handle(signal)) request_stop(signal);
  }
  void request_stop(int signal) {
    if (signal_ == 0) until_ = deadline_in(cause_seconds);
    signal_ = signal;
  }

  /// Ends this rank after a signal's delay. If another rank has failed, waits once more, so that this rank can report
  /// it.
  void end_rank() {
    auto const failed = control_.first_failure();
    if (failed < 0) {
      control_.end_itself(rank_, 0, signal_);
      send_end();
    } else if (!std::exchange(waited_for_cause_, true)) {
      until_ = deadline_in(options_.grace_seconds);
      return;
    } else {
      report();
    }
    until_ = no_deadline;
    signals_.apply_default_effect(signal_);
  }

  ControlPage& control_;
  int rank_;
  Options const& options_;
  StoreConnection* store_;
  bool reports_for_host_;
  std::atomic<bool> store_disconnected_ = false, end_sent_ = false;
  std::atomic<int> open_peers_ = 0;  // number of open peers
  std::vector<FileDescriptor> peers_;
  std::shared_ptr<StopRequest> request_;
  SignalWatch signals_;
  FileDescriptor stop_;
  FileDescriptor launcher_;
  Deadline until_ = no_deadline;
  std::atomic<int> signal_ = 0;
  bool waited_for_cause_ = false;
  std::thread thread_;
};

}}}  // namespace lockstep::launch::detail
