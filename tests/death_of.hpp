// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

namespace lockstep_test {

/// The exit status of a child process, as from waitpid, and its stderr output.
struct Death {
  int status = 0;
  std::string printed;
};

template <class F>
[[nodiscard]] Death death_of(F const& f) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  auto const child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    std::signal(SIGABRT, SIG_DFL);
    f();
    ::_exit(0);
  }
  ::close(ends[1]);
  Death death;
  char text[256];
  for (ssize_t n; (n = ::read(ends[0], text, sizeof text)) > 0;)
    death.printed.append(text, static_cast<std::size_t>(n));
  ::close(ends[0]);
  REQUIRE(::waitpid(child, &death.status, 0) == child);
  return death;
}

}  // namespace lockstep_test
