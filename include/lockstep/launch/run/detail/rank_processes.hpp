// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/auxv.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/launch/detail/supervised_rank.hpp>
#include <lockstep/launch/run/detail/rank_output.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

/// Returns this process's arguments, also those of a loader that started it; empty if /proc is not mounted.
[[nodiscard]] std::vector<std::string> own_arguments();

/// Copies of this program that run as ranks, in a process group of their own. The destructor kills the ranks, and
/// processes that they started and left in their group.
class RankProcesses {
 public:
  struct Process {
    pid_t pid = 0;
    int pidfd = -1;  // readable once the process has ended; -1 on a system without pidfd_open
    bool ended = false;
  };

  RankProcesses() = default;
  RankProcesses(RankProcesses const&) = delete;
  RankProcesses& operator=(RankProcesses const&) = delete;
  ~RankProcesses();

  /// Starts the next rank with these arguments. It inherits the memory, and no other descriptor that is closed on exec.
  /// @throws ConfigError if the system refuses
  void spawn(std::vector<std::string> const& arguments, SupervisedRank const& place, sigset_t const& mask,
             RankOutput& output);

  [[nodiscard]] std::vector<Process>& all() noexcept { return processes_; }
  [[nodiscard]] long alive() const noexcept;
  /// Returns whether a rank's end makes no descriptor readable.
  [[nodiscard]] bool must_be_polled() const noexcept;
  void signal_each(int signal) const noexcept;
  void signal_group(int signal) const noexcept;

 private:
  /// Returns this program's file, or the name that started it if /proc is not mounted.
  static char const* own_program() noexcept;
  /// Returns the loader and its arguments up to the program's name, if a loader started this program, as in
  /// `ld-linux-x86-64.so.2 ./program`. /proc/self/exe is the loader then, and the ranks are started in the same way.
  /// @throws ConfigError if they cannot be told from the program's arguments
  static std::vector<std::string> arguments_of_loader();

  static std::string refused(std::string const& what, int error);

  static std::vector<char*> pointers(std::vector<std::string> const& texts);
  static std::vector<std::string> environment(SupervisedRank const& place);

  std::vector<Process> processes_;
  pid_t group_ = 0;  // pid of its first process
};

}}}  // namespace lockstep::launch::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/launch/run/detail/rank_processes.ipp>
#endif
