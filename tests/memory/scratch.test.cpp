// SPDX-License-Identifier: Apache-2.0
#include <lockstep/memory/scratch.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <vector>

using lockstep::Index;
using lockstep::memory::Block;
using lockstep::memory::HostResource;
using lockstep::memory::Scratch;

namespace {
struct Counting {
  int* allocations;
  Block allocate(std::size_t bytes) {
    ++*allocations;
    return HostResource{}.allocate(bytes);
  }
};
struct Failing {
  bool* fails;
  Block allocate(std::size_t bytes) {
    if (*fails) throw std::bad_alloc();
    return HostResource{}.allocate(bytes);
  }
};
constexpr std::size_t mebibyte = std::size_t{1} << 20;
}  // namespace

TEST_CASE("allocations are aligned, disjoint and keep their addresses") {
  Scratch<> scratch;
  std::vector<std::byte*> taken;
  std::vector<std::size_t> const sizes{1, 31, 32, 33, 64, 65, 3 * mebibyte, 1, mebibyte, 5 * mebibyte, 64};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    auto* data = scratch.take(sizes[i]);
    CHECK(reinterpret_cast<std::uintptr_t>(data) % Scratch<>::alignment == 0);
    std::memset(data, static_cast<int>(i), sizes[i]);
    taken.push_back(data);
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    CHECK(taken[i][0] == static_cast<std::byte>(i));
    CHECK(taken[i][sizes[i] - 1] == static_cast<std::byte>(i));
  }
}

TEST_CASE("after the largest use, there are no further allocations") {
  int allocations = 0;
  Scratch<Counting> scratch(Counting{&allocations});
  auto const use = [&](std::size_t times) {
    for (std::size_t i = 0; i < times; ++i) (void)scratch.take(mebibyte / 2);
    scratch.rewind();
  };
  use(9);
  CHECK(scratch.peak_bytes() == 9 * mebibyte / 2);
  CHECK(scratch.capacity_bytes() >= scratch.peak_bytes());
  auto const before = allocations;
  use(9);
  use(3);
  use(9);
  CHECK(allocations == before);
  use(20);
  CHECK(allocations > before);
  CHECK(scratch.peak_bytes() == 10 * mebibyte);
}

TEST_CASE("a chunk that fits everything is kept, with a little room") {
  int allocations = 0;
  Scratch<Counting> scratch(Counting{&allocations});
  (void)scratch.take(64);
  for (std::size_t bytes : {8 * mebibyte, 8 * mebibyte, 8 * mebibyte + mebibyte / 2}) {
    (void)scratch.take(bytes);
    (void)scratch.take(64);
    scratch.rewind();
    (void)scratch.take(64);
    CHECK(allocations == 2);  // the smallest chunk, and one of 9 MiB
    CHECK_FALSE(scratch.is_fragmented());
  }
  CHECK(scratch.capacity_bytes() == 9 * mebibyte);
}

TEST_CASE("the resource is asked for the owner's minimum, then twice as much, and large requests exactly") {
  int allocations = 0;
  Scratch<Counting> scratch(Counting{&allocations}, 4096);
  for (auto const expected : std::vector<std::size_t>{4096, 8192, 16384}) {
    while (scratch.capacity_bytes() < expected) static_cast<void>(scratch.take(64));
    CHECK(scratch.capacity_bytes() == expected);
  }
  CHECK(allocations == 3);
  static_cast<void>(scratch.take(mebibyte));
  CHECK(scratch.capacity_bytes() >= 16384 + mebibyte);
  scratch.rewind();
  CHECK_FALSE(scratch.is_fragmented());
}

TEST_CASE("rewinding returns the same memory again") {
  Scratch<> scratch;
  auto* const first = scratch.take_elements<float>(10);
  auto* const second = scratch.take_elements<double>(3);
  scratch.rewind();
  CHECK(scratch.take_elements<float>(10) == first);
  CHECK(scratch.take_elements<double>(3) == second);
  scratch.rewind();
  CHECK(scratch.take(0) != nullptr);
}

TEST_CASE("a failed allocation keeps earlier ones, and the arena remains usable") {
  bool fails = false;
  Scratch<Failing> scratch(Failing{&fails});
  auto* const kept = scratch.take(100);
  std::memset(kept, 7, 100);
  fails = true;
  CHECK_THROWS_AS((void)scratch.take(10 * mebibyte), std::bad_alloc);
  CHECK(kept[99] == std::byte{7});
  fails = false;
  auto* const more = scratch.take(10 * mebibyte);
  std::memset(more, 8, 10 * mebibyte);
  CHECK(kept[99] == std::byte{7});
  (void)scratch.take(10 * mebibyte);
  fails = true;
  CHECK_THROWS_AS(scratch.rewind(), std::bad_alloc);  // it merges its chunks
  fails = false;
  auto* const again = scratch.take(21 * mebibyte);
  std::memset(again, 9, 21 * mebibyte);
  scratch.rewind();
  CHECK(scratch.capacity_bytes() >= scratch.peak_bytes());
}

TEST_CASE("a return to a mark reuses memory allocated since, and keeps the rest") {
  for (std::size_t size : {std::size_t{64}, mebibyte}) {  // within a chunk, and over several
    Scratch<> scratch;
    auto* const kept = scratch.take(size);
    std::memset(kept, 7, size);
    auto const mark = scratch.mark();
    std::vector<std::byte*> first;
    for (int i = 0; i < 5; ++i) first.push_back(scratch.take(size));
    std::memset(first.back(), 8, size);
    scratch.rewind(mark);
    CHECK(first.back()[size - 1] == std::byte{8});
    for (auto* const again : first) CHECK(scratch.take(size) == again);
    CHECK(kept[size - 1] == std::byte{7});
    scratch.rewind(mark);
    auto const capacity = scratch.capacity_bytes();
    for (int i = 0; i < 5; ++i) (void)scratch.take(size);
    CHECK(scratch.capacity_bytes() == capacity);
  }
}

TEST_CASE("the peak is the most memory in use at one time") {
  Scratch<> scratch;
  for (int i = 0; i < 10; ++i) {
    auto const mark = scratch.mark();
    (void)scratch.take(3 * mebibyte);
    scratch.rewind(mark);
    (void)scratch.take(mebibyte / 4);
  }
  CHECK(scratch.peak_bytes() == 3 * mebibyte + 9 * mebibyte / 4);
  scratch.rewind();
  CHECK(scratch.capacity_bytes() == scratch.peak_bytes());
  auto const mark = scratch.mark();
  auto* const large = scratch.take(5 * mebibyte);  // beyond the existing chunk
  scratch.rewind(mark);
  CHECK(scratch.take(5 * mebibyte) == large);
  auto* const next = scratch.take(mebibyte);
  CHECK((next >= large + 5 * mebibyte || next + mebibyte <= large));
}

TEST_CASE("it reports allocations, and announces moves") {
  Scratch<> scratch;
  CHECK(scratch.allocations() == 0);
  for (int round = 0; round < 3; ++round) {
    scratch.rewind();
    static_cast<void>(scratch.take(mebibyte));
    CHECK_FALSE(scratch.is_fragmented());
    CHECK(scratch.allocations() == 1);
  }
  static_cast<void>(scratch.take(1));
  CHECK(scratch.is_fragmented());
  CHECK(scratch.allocations() == 2);
  scratch.rewind();
  CHECK_FALSE(scratch.is_fragmented());
  CHECK(scratch.allocations() == 3);
}

TEST_CASE("impossible sizes are refused, and no sum overflows") {
  Scratch<> scratch;
  auto* const first = scratch.take(64);
  constexpr auto most = std::numeric_limits<std::size_t>::max();
  for (auto const bytes : {most, most - 62, most / 2 + 1})
    CHECK_THROWS_AS(static_cast<void>(scratch.take(bytes)), std::bad_alloc);
  for (Index const count : {Index{-1}, std::numeric_limits<Index>::min(), Index{1} << 61, Index{1} << 62})
    CHECK_THROWS_AS(static_cast<void>(scratch.take_elements<double>(count)), std::bad_alloc);
  CHECK(scratch.take(64) == first + 64);
}

TEST_CASE("an address's chunk is found, also for adjacent chunks and descending addresses") {
  struct AdjacentBlocks {
    std::byte* arena;
    int* next;
    int step;
    Block allocate(std::size_t bytes) {
      auto* const data = arena + *next * static_cast<std::ptrdiff_t>(mebibyte);
      *next += step;
      return {data, bytes, nullptr};
    }
  };
  static_assert(lockstep::memory::MemoryResource<AdjacentBlocks>);
  auto const memory = HostResource{}.allocate(2 * mebibyte);
  for (int const step : {1, -1}) {
    int next = step == 1 ? 0 : 1;
    Scratch scratch(AdjacentBlocks{memory.data(), &next, step});
    auto* const first = scratch.take(mebibyte);
    auto* const second = scratch.take(64);
    CHECK(second - first == step * static_cast<std::ptrdiff_t>(mebibyte));
    CHECK(scratch.chunk_of(first) == 0);
    CHECK(scratch.chunk_of(first + mebibyte - 1) == 0);
    CHECK(scratch.chunk_of(second) == 1);
  }
}

TEST_CASE("chunks double, so there are few") {
  Scratch<> scratch;
  for (int i = 0; i < 64; ++i) static_cast<void>(scratch.take(mebibyte));
  CHECK(scratch.allocations() <= 8);
}
