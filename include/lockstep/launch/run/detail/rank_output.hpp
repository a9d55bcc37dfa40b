// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <future>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/start_thread.hpp>
#include <lockstep/launch/detail/file.hpp>
#include <lockstep/launch/options.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

/// Passes on the ranks' output line by line, so that lines of several ranks do not mix, and finally the report. Calls
/// the callbacks on a thread of its own: they may block on a pipe without a reader.
class RankOutput {
 public:
  explicit RankOutput(Options const& options) : options_(options) {}
  RankOutput(RankOutput const&) = delete;
  RankOutput& operator=(RankOutput const&) = delete;
  ~RankOutput() {
    if (!thread_.joinable()) return;
    stop();
    thread_.join();
  }

  /// Returns whether a callback for lines is set.
  [[nodiscard]] bool wanted() const noexcept { return static_cast<bool>(options_.line); }

  /// Returns the file that a rank must use as this stream (1 or 2). Close it once the rank has started.
  /// @throws ConfigError if the system refuses
  File open(int rank, int stream) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
      throw ConfigError("launch: the system refused to read the output of rank " + std::to_string(rank) +
                        " (pipe2): " + std::strerror(errno));
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    sources_.push_back({rank, stream, File(ends[0]), {}});
    return File(ends[1]);
  }

  /// Starts the thread, once all ranks have started.
  /// @throws ConfigError if the system refuses
  void start() {
    if (wake_.get() < 0)
      throw ConfigError(std::string("launch: the system refused to wait for the ranks' output (eventfd): ") +
                        std::strerror(errno));
    std::packaged_task<void()> task([this] { run(); });
    told_ = task.get_future();
    thread_ = start_thread("launch", "the thread that forwards the ranks' output", std::move(task));
  }

  /// Passes on the remaining output once the ranks have ended, then the report if it is not empty. Does not wait for
  /// processes that the ranks left running, although they may still hold the pipes.
  void finish(std::string report) {
    report_ = std::move(report);
    stop();
  }

  /// Waits at most `wait`. Returns whether everything was passed on.
  /// @throws exceptions of the callbacks in the options
  [[nodiscard]] bool told(std::chrono::milliseconds wait) {
    if (told_.wait_for(wait) != std::future_status::ready) return false;
    told_.get();
    return true;
  }

 private:
  static constexpr std::size_t most_in_pipe = std::size_t{1} << 20;  // largest pipe of a user without privileges
  static constexpr std::size_t longest = std::size_t{1} << 16;       // longer lines are passed on in parts

  struct Source {
    int rank, stream;
    File file;
    std::string begun;
  };

  void stop() noexcept {
    over_ = true;
    ::eventfd_write(wake_.get(), 1);
  }

  void run() {
    std::vector<pollfd> polled;
    for (bool last = false; !last;) {
      polled.assign(1, {wake_.get(), POLLIN, 0});
      for (auto const& source : sources_) polled.push_back({source.file.get(), POLLIN, 0});  // poll skips negatives
      ::poll(polled.data(), polled.size(), -1);
      last = over_;
      read();
    }
    for (auto& source : sources_) end(source);
    if (options_.report && !report_.empty()) options_.report(report_);
  }

  /// Passes on the available output, at most one pipe's capacity per rank, so that no rank blocks the others.
  void read() {
    for (auto& source : sources_) {
      if (source.file.get() < 0) continue;
      char buffer[4096];
      for (std::size_t left = most_in_pipe; left > 0; left -= sizeof buffer) {
        auto const got = ::read(source.file.get(), buffer, sizeof buffer);
        if (got > 0) {
          take(source, {buffer, static_cast<std::size_t>(got)});
          continue;
        }
        if (got < 0 && errno == EINTR) continue;
        if (got == 0 || errno != EAGAIN) {
          end(source);
          File const closed = std::exchange(source.file, File());
        }
        break;
      }
    }
  }

  void take(Source& source, std::string_view text) {
    for (auto end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
      source.begun += text.substr(0, end);
      options_.line(source.rank, source.stream, source.begun);
      source.begun.clear();
      text.remove_prefix(end + 1);
    }
    source.begun += text;
    if (source.begun.size() > longest) end(source);
  }
  void end(Source& source) {
    if (source.begun.empty()) return;
    options_.line(source.rank, source.stream, source.begun);
    source.begun.clear();
  }

  Options const& options_;
  std::vector<Source> sources_;  // used by the thread after `start`
  std::string report_;           // used by the thread after the end
  std::atomic<bool> over_ = false;
  File wake_{::eventfd(0, EFD_CLOEXEC)};
  std::future<void> told_;
  std::thread thread_;
};

}}}  // namespace lockstep::launch::detail
