// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/start_thread.hpp>

#include <doctest/doctest.h>

#include <string>

#include "no_threads.hpp"

using namespace lockstep;

TEST_CASE("a started thread runs") {
  int ran = 0;
  start_thread("Loader", "worker 1 of 2", [&] { ++ran; }).join();
  CHECK(ran == 1);
}

TEST_CASE("a failed thread start is an error with the requester, the number of threads and a remedy") {
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
