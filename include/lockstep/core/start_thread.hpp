// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// Runs `body` on a thread. `who` names the owner and `which` the thread, for the error.
/// @throws ConfigError if the system refuses: states the number of threads and their limit
template <class Body>
[[nodiscard]] std::thread start_thread(std::string const& who, std::string const& which, Body&& body) {
  try {
    return std::thread(std::forward<Body>(body));
  } catch (std::system_error const& error) {
    auto message = who + ": the system refused " + which + " (" + error.what() + ")";
    if (auto* const status = std::fopen("/proc/self/status", "re")) {
      int threads = 0;
      for (char line[256]; std::fgets(line, sizeof line, status);)
        if (std::sscanf(line, "Threads: %d", &threads) == 1) message += "; this process has " + std::to_string(threads);
      std::fclose(status);
    }
    rlimit limit{};
    if (::getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
      message += "; all processes of its user may have " + std::to_string(limit.rlim_cur);
    throw ConfigError(message + "; ask for fewer, or raise the limit of threads (ulimit -u, or a container's) or of " +
                      "address space (ulimit -v)");
  }
}

/// Least stack of a thread that computes: matrix products pack their factors there, in up to 320 KiB. The documentation
/// asks for 512 KiB, of which a thread's own data may take some.
inline constexpr std::size_t least_stack_bytes = std::size_t{448} << 10;

/// @throws ConfigError if the calling thread has less stack than computing needs; `who` names the call
void expect_stack(std::string const& who);

/// @throws ConfigError if threads that are started now have less stack than computing needs
void expect_stack_of_new_threads(std::string const& who);

/// Joins threads that the process `starter` started. In a fork, where they do not exist, abandons them.
void join_threads(std::vector<std::thread>& threads, ::pid_t starter) noexcept;

}}  // namespace lockstep

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/core/start_thread.ipp>
#endif
