// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <lockstep/core/clock.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/file_descriptor.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch {

/// Exit status and resources of a finished program.
struct ProgramEnd {
  int exit_code = 0;                    ///< 128 + the signal's number if a signal ended it, as in a shell
  double seconds = 0;                   ///< duration, from its start to its end
  std::size_t peak_resident_bytes = 0;  ///< largest resident memory of the program or of any process that it waited for
  std::string last_error;               ///< last line of its standard error; empty if it wrote none
};

namespace detail {

/// One output stream of a child process, split into lines.
class ChildStream {
 public:
  static constexpr std::size_t max_pipe_bytes = std::size_t{1} << 20;  // largest pipe of a user without privileges
  static constexpr std::size_t read_bytes = 4096;                      // most bytes of one `read_lines`

  /// @throws ConfigError if the system cannot create a pipe
  ChildStream();
  [[nodiscard]] int write_end() const noexcept { return write_.get(); }
  [[nodiscard]] int read_end() const noexcept { return read_.get(); }
  void close_write_end() { write_ = FileDescriptor(); }
  [[nodiscard]] bool is_open() const noexcept { return open_; }

  /// Passes on each complete line. Returns false if there was nothing to read.
  template <class Function>
  bool read_lines(Function&& line) {
    char bytes[read_bytes];
    auto const count = open_ ? ::read(read_.get(), bytes, sizeof bytes) : 0;
    if (count == 0) open_ = false;
    if (count <= 0) return false;
    for (ssize_t i = 0; i < count; ++i)
      if (bytes[i] != '\n' && bytes[i] != '\r')
        line_ += bytes[i];
      else
        end_line(line);
    return true;
  }
  template <class Function>
  void end_line(Function&& line) {
    if (!line_.empty()) line(line_);
    line_.clear();
  }

 private:
  FileDescriptor read_, write_;
  std::string line_;
  bool open_ = true;
};

}  // namespace detail

/// Runs a program to its end with an empty standard input. Calls `line(stream, text)` on this thread for each nonempty
/// line it writes. Stream 1 is standard output, 2 is standard error. Does not wait for processes that the program
/// leaves running.
/// @param arguments the program's path, followed by its arguments
/// @throws ConfigError if the program cannot be started, or if its exit code is unknown since SIGCHLD is ignored
ProgramEnd run_program(std::vector<std::string> const& arguments,
                       std::function<void(int, std::string const&)> const& line);

}}}  // namespace lockstep::launch

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/launch/run/run_program.ipp>
#endif
