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
#include <lockstep/launch/detail/file_descriptor.hpp>
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
  [[nodiscard]] bool has_line_callback() const noexcept { return static_cast<bool>(options_.line); }

  /// Returns the file that a rank must use as this stream (1 or 2). Close it once the rank has started.
  /// @throws ConfigError if the system refuses
  FileDescriptor open(int rank, int stream) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
      throw ConfigError("launch: the system refused to read the output of rank " + std::to_string(rank) +
                        " (pipe2): " + std::strerror(errno));
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    sources_.push_back({rank, stream, FileDescriptor(ends[0]), {}});
    return FileDescriptor(ends[1]);
  }

  /// Starts the thread, once all ranks have started.
  /// @throws ConfigError if the system refuses
  void start() {
    if (wake_.get() < 0)
      throw ConfigError(std::string("launch: the system refused to wait for the ranks' output (eventfd): ") +
                        std::strerror(errno));
    std::packaged_task<void()> task([this] { run(); });
    finished_ = task.get_future();
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
  [[nodiscard]] bool wait_finished(std::chrono::milliseconds wait) {
    if (finished_.wait_for(wait) != std::future_status::ready) return false;
    finished_.get();
    return true;
  }

 private:
  static constexpr std::size_t max_pipe_bytes = std::size_t{1} << 20;  // largest pipe of a user without privileges
  static constexpr std::size_t max_line_bytes = std::size_t{1} << 16;  // longer lines are passed on in parts

  struct Source {
    int rank, stream;
    FileDescriptor file;
    std::string partial_line;
  };

  void stop() noexcept {
    stopping_ = true;
    ::eventfd_write(wake_.get(), 1);
  }

  void run() {
    std::vector<pollfd> polled;
    for (bool last = false; !last;) {
      polled.assign(1, {wake_.get(), POLLIN, 0});
      for (auto const& source : sources_) polled.push_back({source.file.get(), POLLIN, 0});  // poll skips negatives
      ::poll(polled.data(), polled.size(), -1);
      last = stopping_;
      read();
    }
    for (auto& source : sources_) flush(source);
    if (options_.report && !report_.empty()) options_.report(report_);
  }

  /// Passes on the available output, at most one pipe's capacity per rank, so that no rank blocks the others.
  void read() {
    for (auto& source : sources_) {
      if (source.file.get() < 0) continue;
      char buffer[4096];
      for (std::size_t left = max_pipe_bytes; left > 0; left -= sizeof buffer) {
        auto const got = ::read(source.file.get(), buffer, sizeof buffer);
        if (got > 0) {
          split_lines(source, {buffer, static_cast<std::size_t>(got)});
          continue;
        }
        if (got < 0 && errno == EINTR) continue;
        if (got == 0 || errno != EAGAIN) {
          flush(source);
          FileDescriptor const closed = std::exchange(source.file, FileDescriptor());
        }
        break;
      }
    }
  }

  void split_lines(Source& source, std::string_view text) {
    for (auto end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
      source.partial_line += text.substr(0, end);
      options_.line(source.rank, source.stream, source.partial_line);
      source.partial_line.clear();
      text.remove_prefix(end + 1);
    }
    source.partial_line += text;
    if (source.partial_line.size() > max_line_bytes) flush(source);
  }
  void flush(Source& source) {
    if (source.partial_line.empty()) return;
    options_.line(source.rank, source.stream, source.partial_line);
    source.partial_line.clear();
  }

  Options const& options_;
  std::vector<Source> sources_;  // used by the thread after `start`
  std::string report_;           // used by the thread after the end
  std::atomic<bool> stopping_ = false;
  FileDescriptor wake_{::eventfd(0, EFD_CLOEXEC)};
  std::future<void> finished_;
  std::thread thread_;
};

}}}  // namespace lockstep::launch::detail
