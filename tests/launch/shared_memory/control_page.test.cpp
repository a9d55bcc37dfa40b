// SPDX-License-Identifier: Apache-2.0
#include <lockstep/launch/shared_memory/control_page.hpp>

#include <doctest/doctest.h>

#include <csignal>
#include <memory>
#include <string>
#include <thread>

#include <lockstep/core/error.hpp>

using namespace lockstep::launch;

TEST_CASE("zeroed memory is a page without ranks and failures") {
  auto const page = std::make_unique<ControlPage>();
  CHECK(page->first_failure() == -1);
  CHECK_FALSE(page->has_ended(3));
  CHECK(page->describe(3) == "rank 3 has not joined");
}

TEST_CASE("a rank joins and ends") {
  auto const page = std::make_unique<ControlPage>();
  page->join(1, 4242);
  CHECK_FALSE(page->has_ended(1));
  CHECK(page->describe(1) == "rank 1 (pid 4242) is alive");
  page->end(1, 0);
  CHECK(page->has_ended(1));
  CHECK(page->describe(1) == "rank 1 (pid 4242) has ended its work");
  CHECK(page->first_failure() == -1);
}

TEST_CASE("the first failure is kept") {
  auto const page = std::make_unique<ControlPage>();
  page->end(2, 0, SIGKILL);
  page->end(0, 1, 0, "its peer is gone");
  page->end(1, 3);
  CHECK(page->first_failure() == 2);
  CHECK(page->describe(2) == "rank 2 was killed by signal 9 (Killed)");
  CHECK(page->describe(0) == "rank 0 failed: its peer is gone");
  CHECK(page->describe(1) == "rank 1 ended with exit code 3");
  CHECK(page->has_reported_error(0));
  for (int const rank : {1, 2, 3}) CHECK_FALSE(page->has_reported_error(rank));
}

TEST_CASE("the longest error of a rank is kept whole, with the remedy at its end") {
  auto const page = std::make_unique<ControlPage>();
  lockstep::ConfigError const error("rank 1: " + std::string(1900, 'x') + "; name another file");
  page->end(1, 2, 0, error.what());
  CHECK(page->describe(1) == "rank 1: " + std::string(1900, 'x') + "; name another file");
  page->end(2, 1, 0, lockstep::ConfigError(std::string(3000, 'y') + "; the remedy").what());
  CHECK(page->describe(2).ends_with("; the remedy"));
}

TEST_CASE("if two threads of a rank report its end, the first counts, and the second returns after it is written") {
  for (int round = 0; round < 200; ++round) {
    auto const page = std::make_unique<ControlPage>();
    page->join(1, 4242);
    std::thread other([&] {
      page->end_itself(1, 0, SIGTERM, "a signal");
      CHECK(page->has_ended(1));
      static_cast<void>(page->describe(1));
    });
    page->end_itself(1, 7, 0, "rank 1: its own error");
    auto const printed = page->describe(1);
    other.join();
    CHECK(page->describe(1) == printed);
    CHECK(((*page)[1].exit_code == 7) == ((*page)[1].signal == 0));
  }
  auto const page = std::make_unique<ControlPage>();
  page->end_itself(0, 3);
  page->end_itself(0, 0, SIGTERM);
  CHECK(page->describe(0) == "rank 0 ended with exit code 3");
  page->end(0, 0, SIGKILL);  // its parent has seen how it really ended
  CHECK(page->describe(0) == "rank 0 was killed by signal 9 (Killed)");
}

TEST_CASE("a rank whose process is gone is lost, unless it has reported the end of its work") {
  auto const page = std::make_unique<ControlPage>();
  for (int const rank : {0, 1, 2, 3}) page->join(rank, 10 + rank);
  page->end(0, 0);
  page->mark_lost(0);
  CHECK(page->describe(0) == "rank 0 (pid 10) has ended its work");
  CHECK(page->first_failure() == -1);
  page->mark_lost(2);
  page->mark_lost(3);
  CHECK(page->describe(2).starts_with("rank 2 (pid 12) is gone"));
  CHECK(page->has_ended(2));
  CHECK(page->first_failure() == 2);
  page->end(1, 3);
  page->mark_lost(1);
  CHECK(page->describe(1) == "rank 1 (pid 11) ended with exit code 3");
}

TEST_CASE("a message that begins with the rank gets no second prefix") {
  auto const page = std::make_unique<ControlPage>();
  page->end(0, 1, 0, "rank 0 has waited 600 s for rank 1");
  CHECK(page->describe(0) == "rank 0 has waited 600 s for rank 1");
}

TEST_CASE("a long message is truncated, and nothing is written beyond its place") {
  auto const page = std::make_unique<ControlPage>();
  page->join(1, 77);
  page->end(0, 1, 0, std::string(10000, 'x'));
  CHECK(page->describe(0).size() < 2100);
  CHECK(page->describe(0).ends_with("xxx"));
  CHECK(page->describe(1) == "rank 1 (pid 77) is alive");
}
