// SPDX-License-Identifier: Apache-2.0
#include <lockstep/comm/shared_memory/detail/symmetric_heap.hpp>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <map>
#include <vector>

using lockstep::comm::detail::SymmetricHeap;

TEST_CASE("places are allocated from the front, and gaps are used again") {
  SymmetricHeap heap(1000);
  auto const a = heap.allocate(100, 64), b = heap.allocate(100, 64), c = heap.allocate(10, 64);
  CHECK(a == 0);
  CHECK(b == 128);
  CHECK(c == 256);
  heap.free(b);
  CHECK(heap.allocate(130, 64) == 320);  // too large for the gap
  CHECK(heap.allocate(128, 64) == 128);
}

TEST_CASE("a request that does not fit gets no place") {
  SymmetricHeap heap(1000);
  CHECK(heap.allocate(1001, 1) == SymmetricHeap::none);
  CHECK(heap.allocate(static_cast<std::size_t>(-1), 1) == SymmetricHeap::none);
  CHECK(heap.allocate(1000, 1) == 0);
  CHECK(heap.allocate(1, 1) == SymmetricHeap::none);
  heap.free(0);
  CHECK(heap.allocate(1, 1) == 0);
}

TEST_CASE("places never overlap, and equal calls give equal places") {
  CHECK(rc::check("first fit", [](std::vector<std::pair<std::uint16_t, bool>> const& calls) {
    SymmetricHeap heap(1 << 20), twin(1 << 20);
    std::map<std::size_t, std::size_t> taken;
    for (auto const& [bytes, give_back] : calls) {
      if (give_back && !taken.empty()) {
        auto const victim = std::next(taken.begin(), bytes % static_cast<long>(taken.size()));
        heap.free(victim->first);
        twin.free(victim->first);
        taken.erase(victim);
      } else {
        std::size_t const size = bytes + 1U, alignment = bytes % 3 == 0 ? 4096 : 64;
        auto const at = heap.allocate(size, alignment);
        RC_ASSERT(at == twin.allocate(size, alignment));
        if (at == SymmetricHeap::none) continue;
        RC_ASSERT(at % alignment == 0U);
        RC_ASSERT(at + size <= std::size_t{1} << 20);
        auto const next = taken.lower_bound(at);
        if (next != taken.end()) RC_ASSERT(at + size <= next->first);
        if (next != taken.begin()) RC_ASSERT(std::prev(next)->first + std::prev(next)->second <= at);
        taken[at] = size;
      }
    }
  }));
}
