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
#include <lockstep/core/file_descriptor.hpp>
#include <lockstep/core/start_thread.hpp>
#include <lockstep/launch/options.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

/// Passes on the ranks' output line by line, so that lines of several ranks do not mix, and finally the report. Calls
/// the callbacks on a thread of its own: they may block on a pipe without a reader.
class RankOutput {
 public:
  explicit RankOutput(Options const& options) : options_(options) {}
  RankOutput(RankOutput const&) = delete;
  RankOutput& operator=(RankOutput const&) = delete;
  ~RankOutput();

  /// Returns whether a callback for lines is set.
  [[nodiscard]] bool has_line_callback() const noexcept { return static_cast<bool>(options_.line); }

  /// Returns the file that a rank must use as this stream (1 or 2). Close it once the rank has started.
  /// @throws ConfigError if the system refuses
  FileDescriptor open(int rank, int stream);

  /// Starts the thread, once all ranks have started.
  /// @throws ConfigError if the system refuses
  void start();

  /// Passes on the remaining output once the ranks have ended, then the report if it is not empty. Does not wait for
  /// processes that the ranks left running, although they may still hold the pipes.
  void finish(std::string report);

  /// Waits at most `wait`. Returns whether everything was passed on.
  /// @throws exceptions of the callbacks in the options
  [[nodiscard]] bool wait_finished(std::chrono::milliseconds wait);

 private:
  static constexpr std::size_t max_pipe_bytes = std::size_t{1} << 20;  // largest pipe of a user without privileges
  static constexpr std::size_t max_line_bytes = std::size_t{1} << 16;  // longer lines are passed on in parts

  struct Source {
    int rank, stream;
    FileDescriptor file;
    std::string partial_line;
  };

  void stop() noexcept;

  void run();

  /// Passes on the available output, at most one pipe's capacity per rank, so that no rank blocks the others.
  void read();

  void split_lines(Source& source, std::string_view text);
  void flush(Source& source);

  Options const& options_;
  std::vector<Source> sources_;  // used by the thread after `start`
  std::string report_;           // used by the thread after the end
  std::atomic<bool> stopping_ = false;
  FileDescriptor wake_{::eventfd(0, EFD_CLOEXEC)};
  std::future<void> finished_;
  std::thread thread_;
};

}}}  // namespace lockstep::launch::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/launch/run/detail/rank_output.ipp>
#endif
