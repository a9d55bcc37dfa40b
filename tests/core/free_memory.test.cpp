// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/free_memory.hpp>

#include <sys/resource.h>

#include <filesystem>
#include <string>

#include <doctest/doctest.h>

#include "../temporary_folder.hpp"

using namespace lockstep;

namespace {

/// Returns a folder with the files of a system of 1,000 MiB, with 600 MiB and 100 MiB of swap space free.
struct System {
  lockstep_test::TemporaryFolder folder;
  System() {
    write("proc/meminfo",
          "MemTotal:        921600 kB\nMemFree:          10240 kB\nMemAvailable:    614400 kB\n"
          "SwapTotal:       102400 kB\nSwapFree:        102400 kB\n");
  }
  void write(std::string const& name, std::string const& text) const {
    std::filesystem::create_directories(std::filesystem::path(folder / name).parent_path());
    lockstep_test::write_file(folder / name, text);
  }
  [[nodiscard]] FreeMemory memory() const { return FreeMemory::of_host(folder.path().string()).value(); }
};
constexpr std::size_t mebibyte = std::size_t{1} << 20;

}  // namespace

TEST_CASE("free memory of the host includes swap space and reclaimable memory") {
  System const system;
  CHECK(system.memory().free_bytes == 700 * mebibyte);
  CHECK(system.memory().total_bytes == 1000 * mebibyte);
  CHECK(system.memory().limit == FreeMemory::Limit::device);
  CHECK(system.memory().text() == "700 MiB of 1000 MiB are free");
  CHECK_FALSE(FreeMemory::of_host(system.folder / "missing").has_value());
}

TEST_CASE("the control group with the least free memory counts, in both versions, including its parents") {
  System const system;
  system.write("proc/self/cgroup", "1:cpu:/other\n0::/jobs/7\n");
  system.write("sys/fs/cgroup/jobs/7/memory.max", "max\n");
  system.write("sys/fs/cgroup/jobs/7/memory.current", "1048576\n");
  CHECK(system.memory().limit == FreeMemory::Limit::device);
  system.write("sys/fs/cgroup/jobs/memory.max", "314572800\n");
  system.write("sys/fs/cgroup/jobs/memory.current", "209715200\n");
  CHECK(system.memory().free_bytes == 100 * mebibyte);
  CHECK(system.memory().total_bytes == 300 * mebibyte);
  CHECK(system.memory().limit == FreeMemory::Limit::control_group);
  system.write("sys/fs/cgroup/jobs/memory.stat", "anon 5\nactive_file 10485760\ninactive_file 20971520\n");
  CHECK(system.memory().free_bytes == 130 * mebibyte);

  system.write("proc/self/cgroup", "4:memory:/docker/1f\n0::/\n");
  system.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "104857600\n");  // a container sees its group as the root
  system.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "209715200\n");
  CHECK(system.memory().free_bytes == 0);
  system.write("sys/fs/cgroup/memory/memory.stat", "active_file 1\ntotal_inactive_file 125829120\n");
  CHECK(system.memory().free_bytes == 20 * mebibyte);
  system.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");  // no limit
  CHECK(system.memory().limit == FreeMemory::Limit::device);
}

TEST_CASE("the address space counts if it is limited") {
  System const system;
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_AS, &before) == 0);
  system.write("proc/self/statm", "25600 100 10 1 0 50 0\n");
  CHECK(system.memory().free_bytes == 700 * mebibyte);
  rlimit const tight{rlim_t{1} << 46, before.rlim_max};  // sanitizers reserve terabytes
  REQUIRE(::setrlimit(RLIMIT_AS, &tight) == 0);
  CHECK(system.memory().limit == FreeMemory::Limit::device);
  system.write("proc/self/statm", "17179869184 100 10 1 0 50 0\n");
  CHECK(system.memory().free_bytes == 0);
  CHECK(system.memory().limit == FreeMemory::Limit::address_space);
  ::setrlimit(RLIMIT_AS, &before);
}

TEST_CASE("this machine has free memory") {
  auto const memory = FreeMemory::of_host();
  REQUIRE(memory.has_value());
  CHECK(memory->total_bytes > 100 * mebibyte);
  CHECK(memory->free_bytes <= memory->total_bytes);
}

TEST_CASE("sizes are written in a suitable unit") {
  CHECK(memory_size(443 * 1024) == "443 KiB");
  CHECK(memory_size(3 << 20) == "3 MiB");
  CHECK(memory_size(1023.4 * mebibyte) == "1023 MiB");
  CHECK(memory_size(13.26 * 1024 * mebibyte) == "13.3 GiB");
}
