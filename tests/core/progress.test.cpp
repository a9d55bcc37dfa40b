// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/progress.hpp>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

using namespace lockstep;

namespace {
/// Returns the text written to a file while `work(progress)` runs.
template <class Work>
std::string written(double quiet_seconds, Work const& work) {
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  {
    Progress progress(file, quiet_seconds);
    work(progress);
  }
  std::string text(static_cast<std::size_t>(std::ftell(file)), '\0');
  std::rewind(file);
  CHECK(std::fread(text.data(), 1, text.size(), file) == text.size());
  std::fclose(file);
  return text;
}
}  // namespace

TEST_CASE("a line can be redrawn on a terminal, and not in a file or on a terminal that mpirun copies") {
  std::FILE* const file = std::tmpfile();
  CHECK_FALSE(can_redraw(file));
  CHECK_FALSE(can_redraw(nullptr));
  std::fclose(file);
  int const other_end = ::posix_openpt(O_RDWR | O_NOCTTY);
  REQUIRE(other_end >= 0);
  REQUIRE(::grantpt(other_end) == 0);
  REQUIRE(::unlockpt(other_end) == 0);
  std::FILE* const terminal = ::fdopen(::open(::ptsname(other_end), O_RDWR | O_NOCTTY), "w");
  REQUIRE(terminal);
  CHECK(can_redraw(terminal));
  ::setenv("OMPI_COMM_WORLD_RANK", "0", 1);
  CHECK_FALSE(can_redraw(terminal));
  ::unsetenv("OMPI_COMM_WORLD_RANK");
  std::fclose(terminal);
  ::close(other_end);
}

TEST_CASE("work shorter than the quiet period shows nothing") {
  CHECK(written(60, [](Progress& progress) {
          progress.begin("reading", 10);
          for (int i = 0; i < 10; ++i) progress.add(1);
          CHECK_FALSE(progress.spoke());
        }).empty());
}

TEST_CASE("a file gets a plain line per tenth, with the finished fraction and the remaining time") {
  auto const text = written(0, [](Progress& progress) {
    progress.begin("reading", 1000);
    for (int i = 0; i < 1000; ++i) progress.add(1);
    CHECK(progress.spoke());
    progress.begin("counting", 10);
    progress.add(5);
  });
  CHECK(text.find("reading: 10 %, 0:00 left\n") != std::string::npos);
  CHECK(text.find("reading: 100 %, 0:00 left\n") != std::string::npos);
  CHECK(text.find("counting: 50 %, 0:00 left\n") != std::string::npos);
  CHECK(std::count(text.begin(), text.end(), '\n') <= 13);
  for (char const c : text) CHECK((c == '\n' || c >= ' '));
}

TEST_CASE("work of unknown length shows the elapsed time") {
  auto const text = written(0, [](Progress& progress) {
    progress.begin("waiting", 0);
    progress.add(0);
  });
  CHECK(text == "waiting: 0:00 so far\n");
}

TEST_CASE("an evaluation's batches are reported through its callback") {
  auto const text = written(0, [](Progress& progress) {
    auto const made = progress.steps("evaluating");
    for (Index evaluation = 0; evaluation < 2; ++evaluation)
      for (Index step = 1; step <= 4; ++step) made(step, 4);
  });
  auto const first = text.find("evaluating: 100 %");
  REQUIRE(first != std::string::npos);
  CHECK(text.find("evaluating: 25 %", first) != std::string::npos);
}

TEST_CASE("without an output nothing is shown, and several threads can report") {
  Progress silent;
  silent.begin("reading", 4000);
  auto const text = written(0, [](Progress& progress) {
    progress.begin("reading", 4000);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < 1000; ++i) progress.add(1);
      });
    for (auto& thread : threads) thread.join();
    progress.add(0);
  });
  silent.add(4000);
  CHECK_FALSE(silent.spoke());
  CHECK(text.find("reading: 100 %") != std::string::npos);
}

TEST_CASE("durations are minutes and seconds, with hours if there are any") {
  CHECK(minutes_and_seconds(7.9) == "0:07");
  CHECK(minutes_and_seconds(125) == "2:05");
  CHECK(minutes_and_seconds(3723) == "1:02:03");
}
