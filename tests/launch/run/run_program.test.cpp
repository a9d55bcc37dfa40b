// SPDX-License-Identifier: Apache-2.0
#include <lockstep/launch/run/run_program.hpp>

#include <signal.h>

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <lockstep/core/clock.hpp>

using namespace lockstep;

namespace {

struct Ran {
  std::vector<std::string> lines;
  launch::ProgramEnd end;
};
Ran run(std::string const& script) {
  Ran ran;
  ran.end = launch::run_program({"/bin/sh", "-c", script}, [&](int stream, std::string const& text) {
    ran.lines.push_back(std::to_string(stream) + " " + text);
  });
  return ran;
}

}  // namespace

TEST_CASE("each line of a program's output is passed on, and its end is reported") {
  auto const ran = run("echo one; printf 'two\\r\\nthree'; exit 3");
  CHECK(ran.lines == std::vector<std::string>{"1 one", "1 two", "1 three"});
  CHECK(ran.end.exit_code == 3);
  CHECK(ran.end.last_error.empty());
  CHECK(ran.end.seconds > 0);
  CHECK(ran.end.peak_resident_bytes > 100'000);
}

TEST_CASE("the last line of standard error is kept") {
  auto const ran = run("echo first >&2; echo 'second: why' >&2; echo out");
  CHECK(ran.end.last_error == "second: why");
  CHECK(ran.end.exit_code == 0);
  CHECK(ran.lines.size() == 3);
}

TEST_CASE("a program ended by a signal has exit code 128 plus its number") {
  CHECK(run("kill -TERM $$").end.exit_code == 143);
}

TEST_CASE("a long output is read to its end, and standard input is empty") {
  auto const ran = run("cat; i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done");
  REQUIRE(ran.lines.size() == 20000);
  CHECK(ran.lines.back() == "1 line 19999");
}

TEST_CASE("remaining child processes of a program are not waited for") {
  auto const began = Clock::seconds();
  CHECK(run("sleep 30 & echo done").end.exit_code == 0);
  CHECK(Clock::seconds() - began < 20);
}

TEST_CASE("a child process that writes without end does not delay the program's end") {
  auto const ran = run("yes & echo done");
  CHECK(ran.end.exit_code == 0);
  CHECK(std::find(ran.lines.begin(), ran.lines.end(), "1 done") != ran.lines.end());
}

TEST_CASE("an exit code that the system does not tell is an error, after all output") {
  struct sigaction ignored {
  }, before{};
  ignored.sa_handler = SIG_IGN;
  REQUIRE(::sigaction(SIGCHLD, &ignored, &before) == 0);
  std::string output;
  auto const start = [&] {
    static_cast<void>(launch::run_program({"/bin/sh", "-c", "echo broken >&2; exit 3"},
                                          [&](int, std::string const& line) { output = line; }));
  };
  CHECK_THROWS_WITH_AS(start(), doctest::Contains("/bin/sh: its exit code is unknown"), ConfigError);
  ::sigaction(SIGCHLD, &before, nullptr);
  CHECK(output == "broken");
}

TEST_CASE("a program that cannot be started is named") {
  auto const start = [] { static_cast<void>(launch::run_program({"/no/such/program"}, [](int, auto const&) {})); };
  CHECK_THROWS_WITH_AS(
      start(), "/no/such/program: cannot be started: No such file or directory; name an executable file", ConfigError);
}
