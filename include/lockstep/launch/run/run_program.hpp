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
#include <lockstep/launch/detail/file_descriptor.hpp>

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
  /// @throws ConfigError if the system cannot create a pipe
  ChildStream() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
      throw ConfigError(std::string("launch: a program's output needs a pipe, which the system refuses: ") +
                        std::strerror(errno));
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    read_ = FileDescriptor(ends[0]);
    write_ = FileDescriptor(ends[1]);
  }
  [[nodiscard]] int write_end() const noexcept { return write_.get(); }
  [[nodiscard]] int read_end() const noexcept { return read_.get(); }
  void close_write_end() { write_ = FileDescriptor(); }
  [[nodiscard]] bool is_open() const noexcept { return open_; }

  /// Passes on each complete line. Returns false if there was nothing to read.
  template <class F>
  bool read_lines(F&& line) {
    char bytes[4096];
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
  template <class F>
  void end_line(F&& line) {
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
/// @throws ConfigError if the program cannot be started
inline ProgramEnd run_program(std::vector<std::string> const& arguments,
                              std::function<void(int, std::string const&)> const& line) {
  std::array<detail::ChildStream, 2> streams;
  std::vector<char*> argv;
  for (auto const& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  for (int i = 0; i < 2; ++i)
    ::posix_spawn_file_actions_adddup2(&files, streams[static_cast<std::size_t>(i)].write_end(), i + 1);
  pid_t pid = 0;
  auto const began = Clock::seconds();
  int const error = ::posix_spawn(&pid, argv[0], &files, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  if (error != 0)
    throw ConfigError(arguments[0] + ": cannot be started: " + std::strerror(error) + "; name an executable file");
  for (auto& stream : streams) stream.close_write_end();

  ProgramEnd end;
  auto const forward_from = [&](std::size_t i) {
    return [&, i](std::string const& text) {
      if (i == 1) end.last_error = text;
      line(static_cast<int>(i) + 1, text);
    };
  };
  auto const drain = [&] {
    bool any = false;
    for (std::size_t i = 0; i < streams.size(); ++i) any |= streams[i].read_lines(forward_from(i));
    return any;
  };
  int status = 0;
  rusage usage{};
  for (pid_t ended = 0; ended == 0;) {
    pollfd polled[2] = {};
    for (std::size_t i = 0; i < streams.size(); ++i)
      polled[i] = {streams[i].is_open() ? streams[i].read_end() : -1, POLLIN, 0};
    constexpr int milliseconds = 50;
    ::poll(polled, 2, milliseconds);
    drain();
    ended = ::wait4(pid, &status, WNOHANG, &usage);
  }
  end.seconds = Clock::seconds() - began;
  while (drain()) {
  }
  for (std::size_t i = 0; i < streams.size(); ++i) streams[i].end_line(forward_from(i));
  end.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  end.peak_resident_bytes = static_cast<std::size_t>(usage.ru_maxrss) * 1024;
  return end;
}

}}}  // namespace lockstep::launch
