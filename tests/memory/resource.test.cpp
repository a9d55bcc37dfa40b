// SPDX-License-Identifier: Apache-2.0
#include <lockstep/memory/resource.hpp>

#include <doctest/doctest.h>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <string>
#include <vector>

#include "sanitized.hpp"

using lockstep::memory::HostResource;
using lockstep::memory::MemoryResource;

TEST_CASE("host memory is zeroed, aligned and has the requested size") {
  HostResource const resource;
  std::size_t const huge_page = std::size_t{2} << 20;
  for (std::size_t bytes : {std::size_t{1}, std::size_t{31}, std::size_t{32}, std::size_t{33}, std::size_t{64},
                            std::size_t{65}, huge_page - 1, huge_page, huge_page + 1}) {
    CAPTURE(bytes);
    for (int round = 0; round < 2; ++round) {  // the second time in used memory
      auto const block = resource.allocate(bytes);
      CHECK(block.bytes() == bytes);
      auto const address = reinterpret_cast<std::uintptr_t>(block.data());
      CHECK(address % 64 == 0);
      if (bytes >= huge_page) CHECK(address % huge_page == 0);
      CHECK(std::all_of(block.data(), block.data() + bytes, [](std::byte b) { return b == std::byte{0}; }));
      std::fill_n(block.data(), bytes, std::byte{0xFF});
    }
  }
}

TEST_CASE("large memory takes pages of the system only when it is used") {
  auto const page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::size_t const bytes = std::size_t{40} << 20;  // glibc's malloc keeps less than that
  auto const block = HostResource{}.allocate(bytes);
  std::vector<unsigned char> resident(bytes / page);
  REQUIRE(::mincore(block.data(), bytes, resident.data()) == 0);
  auto const used = std::count_if(resident.begin(), resident.end(), [](unsigned char each) { return (each & 1) != 0; });
  if (!LOCKSTEP_SANITIZED) CHECK(used < 16);
  block.data()[bytes / 2] = std::byte{1};
  CHECK(block.data()[bytes - 1] == std::byte{0});
}

TEST_CASE("a request of zero bytes returns null, and too large requests are refused") {
  HostResource const resource;
  CHECK(resource.allocate(0).data() == nullptr);
  CHECK_THROWS_AS((void)resource.allocate(std::numeric_limits<std::size_t>::max()), std::bad_alloc);
  CHECK_THROWS_AS((void)resource.allocate(std::numeric_limits<std::size_t>::max() / 2), std::bad_alloc);
}

TEST_CASE("a failed allocation reports the requested size") {
  constexpr std::size_t requested = std::numeric_limits<std::size_t>::max() / 2;
  try {
    static_cast<void>(HostResource{}.allocate(requested));
    FAIL("half of the address space was allocated");
  } catch (lockstep::memory::OutOfMemory const& error) {
    CHECK(error.bytes() == requested);
    CHECK(error.what() == std::string("out of memory: the system refused 9223372036854775807 bytes of host memory"));
  }
}

TEST_CASE("a resource is a type that returns blocks") {
  struct None {};
  static_assert(MemoryResource<HostResource>);
  static_assert(!MemoryResource<None>);
}
