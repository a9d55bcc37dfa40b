// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "temporary_folder.hpp"

namespace lockstep_test {

inline bool contains(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

/// Creates a file in a folder and returns its path.
inline std::string save(TemporaryFolder const& folder, std::string const& name, std::string const& text) {
  write_file(folder / name, text);
  return folder / name;
}

/// The result of a program.
struct Outcome {
  int exit_code = -1;  ///< 128 + signal if a signal ended it, as in a shell
  std::string out, err;
  double seconds = 0;

  [[nodiscard]] std::ptrdiff_t lines_of_err() const { return std::ranges::count(err, '\n'); }
};

/// A running program in its own process group, with empty standard input. The destructor kills processes that still
/// run.
class Program {
 public:
  Program(std::string const& file, std::vector<std::string> const& arguments) {
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, 1, (folder_ / "out").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    posix_spawn_file_actions_addopen(&files, 2, (folder_ / "err").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    std::vector<char*> argv{const_cast<char*>(file.c_str())};
    for (auto const& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    int const error = posix_spawn(&pid_, file.c_str(), &files, &attributes, argv.data(), environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    if (error) throw std::runtime_error("cannot start " + file);
  }
  ~Program() {
    ::kill(-pid_, SIGKILL);
    if (!ended_) ::waitpid(pid_, nullptr, 0);
  }
  Program(Program const&) = delete;
  Program& operator=(Program const&) = delete;

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  [[nodiscard]] std::string out() const { return read_file(folder_ / "out"); }
  /// The processes that this process started and that still run.
  [[nodiscard]] std::vector<pid_t> children() const {
    std::vector<pid_t> found;
    for (auto const& entry : std::filesystem::directory_iterator("/proc")) {
      auto const name = entry.path().filename().string();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      auto const stat = read_file((entry.path() / "stat").string());  // pid (name) state parent …
      auto const end = stat.rfind(')');
      if (end == std::string::npos || stat.size() < end + 4 || stat[end + 2] == 'Z') continue;
      if (std::stol(stat.substr(end + 4)) == pid_) found.push_back(static_cast<pid_t>(std::stol(name)));
    }
    std::ranges::sort(found);
    return found;
  }
  /// True while any process of the program's group is left.
  [[nodiscard]] bool leaves_orphans() const { return ::kill(-pid_, 0) == 0; }

  /// Waits for the end, for at most `limit_seconds`; then the group is killed and the exit code is 137.
  Outcome wait(double limit_seconds) {
    auto const began = std::chrono::steady_clock::now();
    auto const seconds = [&] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    };
    int status = 0;
    while (::waitpid(pid_, &status, WNOHANG) == 0) {
      if (seconds() > limit_seconds) ::kill(-pid_, SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    ended_ = true;
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), out(), read_file(folder_ / "err"),
            seconds()};
  }

 private:
  TemporaryFolder folder_;
  pid_t pid_ = 0;
  bool ended_ = false;
};

/// Returns the path of an example program; ctest passes it to tests that declare NEEDS.
inline std::string example(std::string const& name) {
  char const* path = std::getenv(("LOCKSTEP_PROGRAM_" + name).c_str());
  if (!path)
    throw std::runtime_error("LOCKSTEP_PROGRAM_" + name + " does not say where the program is; run this through ctest");
  return path;
}

/// Runs an example program to its end.
inline Outcome run_example(std::string const& name, std::vector<std::string> const& arguments,
                           double limit_seconds = 120) {
  return Program(example(name), arguments).wait(limit_seconds);
}

}  // namespace lockstep_test
