// SPDX-License-Identifier: Apache-2.0
#include <lockstep/scaling/machine_ceiling.hpp>

#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "death_of.hpp"
#include "sanitized.hpp"
#include "temporary_folder.hpp"

using namespace lockstep;
using parallel::CollectiveCost;
using scaling::MachineCeiling;
using scaling::Workload;

namespace {

/// Four cores, of which two share half of what they have.
MachineCeiling four() { return {.cores = 4, .points = {{1, 1, 1}, {2, 1.25, 1.5}, {4, 1.5, 2}}}; }

}  // namespace

TEST_CASE("a measured ceiling has a point for each power of two up to the cores, and no factor below 1") {
  auto const measured = MachineCeiling::measure(0.02);
  REQUIRE_FALSE(measured.points.empty());
  CHECK(measured.points.front().threads == 1);
  CHECK(measured.points.front().arithmetic == 1);
  CHECK(measured.points.back().threads == measured.cores);
  for (auto const& point : measured.points) {
    CHECK(point.arithmetic >= 1);
    CHECK(point.memory >= 1);
  }
}

TEST_CASE("factors are interpolated between the measured points; ranks beyond the cores take turns") {
  auto const ceiling = four();
  CHECK(ceiling.pass_factor(1) == 1);
  CHECK(ceiling.pass_factor(2) == 1.25);
  CHECK(ceiling.pass_factor(3) == doctest::Approx(1.375));
  CHECK(ceiling.pass_factor(4) == 1.5);
  CHECK(ceiling.pass_factor(8) == 3);
  CHECK(ceiling.update_factor(4, 1e6) == 2);
  CHECK(ceiling.update_factor(4, 1e3) == 1.5);
  CHECK(MachineCeiling{}.pass_factor(4) == 4);
}

TEST_CASE("ranks of one machine compute longer, as its ceiling says") {
  Workload const work{.samples = 8, .pass_seconds = 1, .optimizer_seconds = 0.5, .gradients = {{1e6, 1}}};
  auto const two = predict(work, 2, CollectiveCost{0.25, 0}, four());
  CHECK(two.pass_seconds == 1.25);
  CHECK(two.optimizer_seconds == 0.75);
  CHECK(two.step_seconds == doctest::Approx(1.25 + 0.75 + 0.25));
  CHECK(two.efficiency == doctest::Approx(1.5 / 2.25));
  auto const eight = predict(work, 8, CollectiveCost{0.25, 0}, four());
  CHECK(eight.pass_seconds == 3);
  CHECK(eight.samples_per_second == doctest::Approx(64 / (3 + 2 + 0.25)));
  auto measured_on_two = work;
  measured_on_two.ranks = 2;
  auto const four_ranks = predict(measured_on_two, 4, CollectiveCost{}, four());
  CHECK(four_ranks.pass_seconds == doctest::Approx(1.5 / 1.25));
  CHECK(four_ranks.efficiency == doctest::Approx((1 / 1.25 + 0.5 / 1.5) / (1.5 / 1.25 + 0.5 * 2 / 1.5)));
}

TEST_CASE("ranks that take turns wait less for slow ranks, because others compute meanwhile") {
  Workload const work{.samples = 8, .pass_seconds = 1, .spread_seconds = 0.1};
  auto const waits = [&](Index ranks, Index cores) {
    MachineCeiling const ceiling{.cores = cores, .points = {{1, 1, 1}, {cores, 1, 1}}};
    return predict(work, ranks, CollectiveCost{}, ceiling).slowest_seconds;
  };
  auto const order = [](Index i) { return scaling::detail::expected_order(i, 4); };
  CHECK(order(4) == doctest::Approx(1.049).epsilon(0.001));  // exact: 1.029
  CHECK(order(1) == doctest::Approx(-order(4)));
  CHECK(order(3) == doctest::Approx(0.299).epsilon(0.01));  // exact: 0.297
  CHECK(waits(4, 4) == doctest::Approx(0.1 * order(4)));
  CHECK(waits(4, 2) == doctest::Approx(0.1 * (order(4) - order(3)) / 2));
  CHECK(waits(4, 1) == doctest::Approx(0).epsilon(1e-9));
}

TEST_CASE("a stored ceiling is used again unless another user may have written it") {
  lockstep_test::TemporaryFolder const folder;
  auto const file = folder.path() / MachineCeiling::file_name();
  auto stored = four();
  stored.cores = stored.points.back().threads = processors();
  if (stored.cores == 1) stored.points = {{1, 1, 1}};
  if (stored.cores == 2) stored.points.erase(stored.points.begin() + 1);
  stored.points.front().memory = 1.0625;  // no measurement gives this
  auto const store = [&](std::string const& text) {
    lockstep_test::write_file(file.string(), text);
    REQUIRE(::chmod(file.c_str(), 0600) == 0);
  };
  auto const is_used = [&] { return MachineCeiling::cached(folder.path(), 0.01).points.front().memory == 1.0625; };
  store(stored.json());
  CHECK(is_used());
  REQUIRE(::chmod(file.c_str(), 0620) == 0);
  CHECK_FALSE(MachineCeiling::read(file));
  store("{\"schema\": 1, \"cores\": 1");
  CHECK_FALSE(MachineCeiling::read(file));
  store("{\"schema\": 1, \"cores\": 1, \"busy\": false, \"points\": []}");
  CHECK_FALSE(MachineCeiling::read(file));
  store(R"({"schema": 1, "cores": 1, "busy": false, "points": [{"threads": 1, "arithmetic": 0.5, "memory": 1}]})");
  CHECK_FALSE(MachineCeiling::read(file));
  stored.busy = true;
  store(stored.json());
  CHECK(MachineCeiling::read(file));
  CHECK_FALSE(is_used());  // and is replaced by a measurement
  CHECK(MachineCeiling::read(file)->points.front().memory == 1);
  std::filesystem::remove(file);
  lockstep_test::write_file((folder.path() / "elsewhere").string(), four().json());
  std::filesystem::create_symlink(folder.path() / "elsewhere", file);
  CHECK_FALSE(MachineCeiling::read(file));
}

TEST_CASE("a ceiling is stored in a private file, and not in a folder that others may write") {
  lockstep_test::TemporaryFolder const folder;
  auto const file = folder.path() / MachineCeiling::file_name();
  REQUIRE(::chmod(folder.path().c_str(), 0777) == 0);
  static_cast<void>(MachineCeiling::cached(folder.path(), 0.01));
  CHECK_FALSE(std::filesystem::exists(file));
  REQUIRE(::chmod(folder.path().c_str(), 0700) == 0);
  static_cast<void>(MachineCeiling::cached(folder.path(), 0.01));
  CHECK(MachineCeiling::read(file));
  CHECK((std::filesystem::status(file).permissions() & std::filesystem::perms::all) ==
        (std::filesystem::perms::owner_read | std::filesystem::perms::owner_write));
}

TEST_CASE("a folder that cannot be written to is no error") {
  CHECK_FALSE(MachineCeiling::cached("/proc/self/no/folder", 0.01).points.empty());
}

#if !defined(LOCKSTEP_COMPILED) && !LOCKSTEP_SANITIZED  // sanitizers need all of the address space
TEST_CASE("a measurement for which the system has too few threads is an error, not the end of the program") {
  auto const death = lockstep_test::death_of([] {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    constexpr std::size_t stack = std::size_t{1} << 30;  // the first thread has room for it, and the second has not
    rlimit const space{pages * 4096 + stack * 3 / 2, RLIM_INFINITY};
    ::pthread_attr_t attributes;
    ::pthread_attr_init(&attributes);
    ::pthread_attr_setstacksize(&attributes, stack);
    ::pthread_setattr_default_np(&attributes);
    std::vector<scaling::detail::CeilingWork> works(3);
    ::setrlimit(RLIMIT_AS, &space);
    try {
      static_cast<void>(scaling::detail::sample_ceiling(works, 3, &scaling::detail::CeilingWork::multiply, 0.01));
    } catch (ConfigError const& error) {
      ::_exit(std::string(error.what()).find("thread 2") != std::string::npos ? 7 : 8);
    }
  });
  CAPTURE(death.printed);
  CHECK(WIFEXITED(death.status));
  CHECK(WEXITSTATUS(death.status) == 7);
}
#endif
