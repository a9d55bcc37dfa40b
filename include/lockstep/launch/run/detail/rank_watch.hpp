// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <lockstep/core/file_descriptor.hpp>
#include <lockstep/core/start_thread.hpp>
#include <lockstep/launch/detail/readable.hpp>
#include <lockstep/launch/detail/store_connection.hpp>
#include <lockstep/launch/options.hpp>
#include <lockstep/launch/run/detail/signal_watch.hpp>
#include <lockstep/launch/shared_memory/control_page.hpp>
#include <lockstep/launch/stop_request.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

/// Writes the store's notification about a rank other than `rank` to the control page.
void record_notification(ControlPage& control, int rank, StoreConnection::Message const& message);

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
            StoreConnection* store = nullptr, bool reports_for_host = true);
  RankWatch(RankWatch const&) = delete;
  RankWatch& operator=(RankWatch const&) = delete;
  ~RankWatch();

  /// Returns the stop request for this rank's world; null with OnSignal::end.
  [[nodiscard]] std::shared_ptr<StopRequest const> request() const noexcept { return request_; }

  /// Sends this rank's end, as it is in the control page, to the other hosts, once.
  void send_end() noexcept;
  /// Waits until `all_ended()`, on the rank through which the others learn of each other. `all_ended()` must block for
  /// a moment. After a failure waits for at most `grace_seconds`.
  template <class AllEnded>
  void wait_for_ends(AllEnded const& all_ended) const {
    for (auto until = no_deadline; !all_ended() && Clock::nanoseconds() < until;)
      if (until == no_deadline && control_.first_failure() >= 0) until = deadline_in(options_.grace_seconds);
  }
  /// Waits until this rank has received the ends of all others, once the store of this process has sent them.
  void wait_for_notifications() const;
  void wait_for_peers() const;
  /// Reports the first failure, if any, unless another rank has. Ignores a rank that the signal to all ranks has ended.
  void report();

 private:
  static constexpr double cause_seconds = 0.2;       // from a signal to the notification of its cause
  static constexpr double notification_seconds = 2;  // for notifications from a socket of this process

  void run();
  /// Reports on the thread of this object. An exception of the callback would end the program there, so standard error
  /// gets the report and the exception's message instead.
  void report_on_thread() noexcept;

  /// Reads the store's notifications. If the store's host is gone, so are the ranks there, at least rank 0.
  void read_notifications();
  void close_peer(std::size_t rank);

  /// Handles a signal. After a failure it is no stop request, since there is no complete state to save.
  void handle_signal(int signal);
  void request_stop(int signal);

  /// Ends this rank after a signal's delay. If another rank has failed, waits once more, so that this rank can report
  /// it.
  void end_rank();

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
  pid_t launcher_pid_;
  FileDescriptor launcher_;  // readable once the launcher has ended
  bool launcher_ended_ = false;
  Deadline until_ = no_deadline;
  std::atomic<int> signal_ = 0;
  bool waited_for_cause_ = false;
  std::thread thread_;
};

}}}  // namespace lockstep::launch::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/launch/run/detail/rank_watch.ipp>
#endif
