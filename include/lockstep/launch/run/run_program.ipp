// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/launch/run/run_program.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

LOCKSTEP_INLINE ChildStream::ChildStream() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw ConfigError(std::string("launch: a program's output needs a pipe, which the system refuses: ") +
                      std::strerror(errno));
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  read_ = FileDescriptor(ends[0]);
  write_ = FileDescriptor(ends[1]);
}

}}}  // namespace lockstep::launch::detail

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch {

LOCKSTEP_INLINE ProgramEnd run_program(std::vector<std::string> const& arguments,
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
  pid_t ended = 0;
  while (ended == 0) {
    pollfd polled[2] = {};
    for (std::size_t i = 0; i < streams.size(); ++i)
      polled[i] = {streams[i].is_open() ? streams[i].read_end() : -1, POLLIN, 0};
    constexpr int milliseconds = 50;
    ::poll(polled, 2, milliseconds);
    drain();
    ended = ::wait4(pid, &status, WNOHANG, &usage);
  }
  end.seconds = Clock::seconds() - began;
  // A process that is left running may never stop writing: read what the pipes can hold.
  for (std::size_t turns = detail::ChildStream::max_pipe_bytes / detail::ChildStream::read_bytes; turns > 0 && drain();
       --turns) {
  }
  for (std::size_t i = 0; i < streams.size(); ++i) streams[i].end_line(forward_from(i));
  if (ended < 0)
    throw ConfigError(arguments[0] +
                      ": its exit code is unknown, because this process ignores SIGCHLD or waits for all its children "
                      "elsewhere; start it with the default effect of SIGCHLD");
  end.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  end.peak_resident_bytes = static_cast<std::size_t>(usage.ru_maxrss) * 1024;
  return end;
}

}}}  // namespace lockstep::launch
