// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/processors.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "temporary_folder.hpp"

using namespace lockstep;

TEST_CASE("a process counts its allowed processors, not the machine's") {
  cpu_set_t before, one;
  REQUIRE(::sched_getaffinity(::getpid(), sizeof before, &before) == 0);
  int const quota = processor_quota().value_or(CPU_COUNT(&before));
  CHECK(processors() == std::min(CPU_COUNT(&before), quota));
  std::size_t first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  REQUIRE(::sched_setaffinity(::getpid(), sizeof one, &one) == 0);
  CHECK(processors() == 1);
  REQUIRE(::sched_setaffinity(::getpid(), sizeof before, &before) == 0);
  CHECK(allowed_processors() == CPU_COUNT(&before));
}

namespace {

/// Folder with /proc/self/cgroup and the files of control groups.
struct Machine : lockstep_test::TemporaryFolder {
  void write(std::string const& path, std::string const& text) const {
    auto const file = *this / path;
    std::filesystem::create_directories(std::filesystem::path(file).parent_path());
    lockstep_test::write_file(file, text);
  }
  [[nodiscard]] std::optional<int> quota() const { return processor_quota(path().string()); }
};

}  // namespace

TEST_CASE("a quota of control groups of version 2 counts in whole processors, the least of the groups above") {
  Machine const machine;
  CHECK_FALSE(machine.quota());
  machine.write("proc/self/cgroup", "0::/pods/one\n");
  CHECK_FALSE(machine.quota());
  machine.write("sys/fs/cgroup/pods/one/cpu.max", "max 100000\n");
  CHECK_FALSE(machine.quota());
  machine.write("sys/fs/cgroup/pods/cpu.max", "400000 100000\n");
  CHECK(machine.quota() == 4);
  machine.write("sys/fs/cgroup/pods/one/cpu.max", "250000 100000\n");
  CHECK(machine.quota() == 2);
  machine.write("sys/fs/cgroup/pods/one/cpu.max", "50000 100000\n");
  CHECK(machine.quota() == 1);
}

TEST_CASE("a container whose path is its host's has its quota at the mount point") {
  Machine const machine;
  machine.write("proc/self/cgroup", "0::/../../kubepods/pod7\n");
  machine.write("sys/fs/cgroup/cpu.max", "300000 100000\n");
  CHECK(machine.quota() == 3);
}

TEST_CASE("a quota of control groups of version 1 is read, and -1 is none") {
  Machine const machine;
  machine.write("proc/self/cgroup", "7:memory:/docker/a\n5:cpuacct,cpu:/docker/a\n0::/docker/a\n");
  machine.write("sys/fs/cgroup/cpu/docker/a/cpu.cfs_quota_us", "-1\n");
  machine.write("sys/fs/cgroup/cpu/docker/a/cpu.cfs_period_us", "100000\n");
  CHECK_FALSE(machine.quota());
  machine.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n");
  machine.write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  CHECK(machine.quota() == 2);
  machine.write("sys/fs/cgroup/cpu/docker/a/cpu.cfs_quota_us", "100000\n");
  CHECK(machine.quota() == 1);
}

TEST_CASE("the time for which quotas stopped the process is the longest of its groups'") {
  Machine const machine;
  auto const throttled = [&] { return throttled_seconds(machine.path().string()); };
  CHECK(throttled() == 0);
  machine.write("proc/self/cgroup", "5:cpuacct,cpu:/docker/a\n0::/docker/a\n");
  machine.write("sys/fs/cgroup/cpu/docker/a/cpu.stat", "nr_periods 9\nnr_throttled 3\nthrottled_time 2000000000\n");
  CHECK(throttled() == doctest::Approx(2));
  machine.write("sys/fs/cgroup/docker/cpu.stat", "usage_usec 9000000\nthrottled_usec 3500000\nnr_bursts 0\n");
  CHECK(throttled() == doctest::Approx(3.5));
}

TEST_CASE("a thread's wait for a processor is the second number of its schedstat, in nanoseconds") {
  Machine const machine;
  auto const queued = [&](int thread) { return queued_seconds(thread, machine.path().string()); };
  CHECK(queued(0) == 0);
  machine.write("proc/thread-self/schedstat", "900 1500000000 7\n");
  machine.write("proc/self/task/42/schedstat", "900 2500000000 7\n");
  CHECK(queued(0) == doctest::Approx(1.5));
  CHECK(queued(42) == doctest::Approx(2.5));
  CHECK(queued_seconds() >= 0);
}

TEST_CASE("a set of processors has a number, which changes with the processors that are allowed") {
  cpu_set_t before, one;
  REQUIRE(::sched_getaffinity(::getpid(), sizeof before, &before) == 0);
  auto const all = processor_set();
  CHECK(all == processor_set());
  CHECK(static_cast<std::uint64_t>(static_cast<double>(all)) == all);
  if (CPU_COUNT(&before) == 1) return;
  std::size_t first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  REQUIRE(::sched_setaffinity(::getpid(), sizeof one, &one) == 0);
  CHECK(processor_set() != all);
  REQUIRE(::sched_setaffinity(::getpid(), sizeof before, &before) == 0);
}
