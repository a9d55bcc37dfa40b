// SPDX-License-Identifier: Apache-2.0
#include <lockstep/launch/shared_memory/shared_segment.hpp>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>

#include "death_of.hpp"
#include "sanitized.hpp"

using lockstep::ConfigError;
using lockstep::launch::SharedSegment;

namespace {

constexpr std::size_t page = 4096, place = 64 * page;  // after the control page

void check_is_zeroed_and_forgets(SharedSegment& segment) {
  auto* const data = segment.data() + place;
  CHECK(reinterpret_cast<std::uintptr_t>(segment.data()) % SharedSegment::unit == 0);
  CHECK(data[5] == std::byte{0});
  std::memset(data, 7, 2 * page);
  segment.release_pages(data, page);
  CHECK(data[5] == std::byte{0});
  CHECK(data[page] == std::byte{7});
  segment.data()[segment.bytes() - 1] = std::byte{1};  // all of it is present
}

/// Memory that counts against RLIMIT_DATA so far.
rlim_t bytes_of_data() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (rlim_t kilobytes = 0; word == "VmData:" && status >> kilobytes) return kilobytes << 10;
  return 0;
}

}  // namespace

TEST_CASE("threads share memory") {
  auto const segment = SharedSegment::between_threads(2, 11);
  CHECK(segment->descriptor() == -1);
  CHECK(segment->control().head.job == 11);
  CHECK(segment->control().head.size == 2);
  check_is_zeroed_and_forgets(*segment);
}

TEST_CASE("threads use small pages if a limit refuses unused memory") {
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_DATA, &before) == 0);
  rlimit tight = before;
  tight.rlim_cur = bytes_of_data() + SharedSegment::between_processes(2, 11)->bytes() / 2;
  REQUIRE(::setrlimit(RLIMIT_DATA, &tight) == 0);
  auto const segment = SharedSegment::between_threads(2, 11);
  ::setrlimit(RLIMIT_DATA, &before);
  CHECK(segment->descriptor() >= 0);
  check_is_zeroed_and_forgets(*segment);
}

TEST_CASE("locked pages are zeroed, which the system does not take back") {
  for (auto const& segment : {SharedSegment::between_threads(2, 11), SharedSegment::between_processes(2, 11)}) {
    auto* const data = segment->data() + place;
    if (::mlock(data, page) != 0) {
      MESSAGE("not tested: the system refuses to lock a page");
      return;
    }
    std::memset(data, 7, 2 * page);
    segment->release_pages(data, page);
    CHECK(data[5] == std::byte{0});
    CHECK(data[page] == std::byte{7});
  }
}

TEST_CASE("processes share memory at any mapping address, and it is closed on exec") {
  auto const segment = SharedSegment::between_processes(3, 12);
  check_is_zeroed_and_forgets(*segment);
  CHECK((::fcntl(segment->descriptor(), F_GETFD) & FD_CLOEXEC) != 0);
  auto const other = SharedSegment::attach(::dup(segment->descriptor()), 3, 12);
  CHECK(other->bytes() == segment->bytes());
  CHECK(other->data() != segment->data());
  CHECK((::fcntl(other->descriptor(), F_GETFD) & FD_CLOEXEC) != 0);
  segment->data()[place] = std::byte{42};
  CHECK(other->data()[place] == std::byte{42});
}

TEST_CASE("memory that does not belong to this run is refused") {
  CHECK_THROWS_WITH_AS(SharedSegment::attach(12345, 2, 1), doctest::Contains("file descriptor 12345"), ConfigError);
  int const file = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  CHECK_THROWS_AS(SharedSegment::attach(file, 2, 1), ConfigError);
  CHECK(::close(file) == 0);  // unchanged
  auto const segment = SharedSegment::between_processes(2, 1);
  CHECK_THROWS_AS(SharedSegment::attach(segment->descriptor(), 2, 99), ConfigError);
  CHECK_THROWS_AS(SharedSegment::attach(segment->descriptor(), 3, 1), ConfigError);
  CHECK(SharedSegment::attach(::dup(segment->descriptor()), 2, 1) != nullptr);
#if !LOCKSTEP_SANITIZED  // sanitizers need all of the address space
  auto const death = lockstep_test::death_of([&] {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit const tight{pages * page + (std::size_t{64} << 20), RLIM_INFINITY};
    ::setrlimit(RLIMIT_AS, &tight);
    try {
      static_cast<void>(SharedSegment::attach(segment->descriptor(), 2, 1));
    } catch (ConfigError const&) {
      ::_exit(::fcntl(segment->descriptor(), F_GETFD) >= 0 ? 7 : 8);
    }
  });
  CHECK(WIFEXITED(death.status));
  CHECK(WEXITSTATUS(death.status) == 7);  // still open
#endif
}
