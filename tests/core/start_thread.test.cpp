// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/start_thread.hpp>

#include <doctest/doctest.h>

#include <string>

#include "no_threads.hpp"

using namespace lockstep;

TEST_CASE("what is started runs") {
  int ran = 0;
  start_thread("Loader", "worker 1 of 2", [&] { ++ran; }).join();
  CHECK(ran == 1);
}

TEST_CASE("a thread that the system refuses is an error with who wanted it, how many there are, and what to do") {
  std::string message;
  {
    lockstep_test::NoThreads const refused;
    try {
      start_thread("Loader", "worker 1 of 2", [] {}).join();
    } catch (ConfigError const& error) {
      message = error.what();
    }
  }
  CAPTURE(message);
  CHECK(message.starts_with("Loader: the system refused worker 1 of 2 ("));
  CHECK(message.find("; this process has ") != std::string::npos);
  CHECK(message.find("; ask for fewer, or raise the limit of threads (ulimit -u") != std::string::npos);
}
