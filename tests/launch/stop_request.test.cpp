// SPDX-License-Identifier: Apache-2.0
#include <lockstep/launch/stop_request.hpp>

#include <doctest/doctest.h>
#include <unistd.h>

using namespace lockstep;

TEST_CASE("the first signal of a scheduler requests a stop, immediate repetitions count as one, a later one does not") {
  for (int const signal : {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU}) {
    launch::StopRequest request;
    auto const token = request.token();
    CHECK(request.signal() == 0);
    CHECK_FALSE(request.handle(SIGINT));
    CHECK_FALSE(token.stop_requested());
    CHECK(request.handle(signal));
    CHECK(token.stop_requested());
    CHECK(request.signal() == signal);
    CHECK(request.handle(SIGTERM));
    CHECK_FALSE(request.handle(SIGINT));
    ::usleep(1'100'000);
    CHECK_FALSE(request.handle(SIGTERM));
    CHECK(request.signal() == signal);
  }
}

TEST_CASE("a limit of processor time, which the system repeats each second, does not end the save") {
  launch::StopRequest request;
  CHECK(request.handle(SIGXCPU));
  ::usleep(1'100'000);
  CHECK(request.handle(SIGXCPU));
  CHECK_FALSE(request.handle(SIGTERM));
}

TEST_CASE("a process that stopped on request has its own exit code") {
  CHECK(launch::StopRequest::is_stop_exit_code(128 + SIGTERM));
  CHECK(launch::StopRequest::is_stop_exit_code(128 + SIGHUP));
  CHECK(launch::StopRequest::is_stop_exit_code(128 + SIGUSR1));
  CHECK(launch::StopRequest::is_stop_exit_code(128 + SIGUSR2));
  for (int const code : {0, 1, 2, SIGTERM, 128 + SIGINT, 128 + SIGKILL})
    CHECK_FALSE(launch::StopRequest::is_stop_exit_code(code));
}
