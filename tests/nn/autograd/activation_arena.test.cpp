// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/autograd/activation_arena.hpp>

#include <doctest/doctest.h>

using namespace lockstep;

namespace {
using Arena = nn::ActivationArena<HostSpace>;
using Slot = nn::GradientSlot<float>;

Slot slot_of(Arena& arena, Index size) {
  Slot slot;
  slot.size = size;
  slot.value = arena.take<float>(size);
  return slot;
}
}  // namespace

TEST_CASE("released memory is reused by the next request that it fits") {
  Arena arena;
  auto* const first = arena.take<float>(64);
  auto* const second = arena.take<float>(64);
  CHECK(first != second);
  arena.release(first, 64);
  arena.release<float>(nullptr, 64);
  CHECK(arena.take<float>(64) == first);
  CHECK(arena.take<float>(64) != second);
}

TEST_CASE("memory released before a mark is not reused until its scope ends") {
  Arena arena;
  auto* const before = arena.take<float>(64);
  arena.release(before, 64);
  auto const mark = arena.mark();
  auto* const inside = arena.take<float>(64);
  CHECK(inside != before);
  arena.rewind(mark);
  CHECK(arena.take<float>(64) == before);
}

TEST_CASE("the first gradient overwrites and later ones add; without a slot there is none") {
  Arena arena;
  auto slot = slot_of(arena, 8);
  auto const first = arena.target(&slot), second = arena.target(&slot);
  CHECK(first.write == Write::overwrite);
  CHECK(second.write == Write::add);
  CHECK(first.data == second.data);
  CHECK_FALSE(arena.target<float>(nullptr));
}

TEST_CASE("a gradient takes the memory of the output's gradient unless that has another producer") {
  Arena arena;
  auto x = slot_of(arena, 8), y = slot_of(arena, 8), z = slot_of(arena, 8), longer = slot_of(arena, 9);
  y.producers = 1;
  auto const dy = arena.target(&y);
  auto const dx = arena.target_in_place(&x, y);
  CHECK(dx.data == dy.data);
  CHECK(dx.write == Write::overwrite);
  CHECK(arena.target_in_place(&x, y).write == Write::add);  // x's gradient has a place
  CHECK(arena.target_in_place(&longer, y).data != dy.data);
  y.producers = 2;
  CHECK(arena.target_in_place(&z, y).data != dy.data);
  CHECK_FALSE(arena.target_in_place<float>(nullptr, y));
}

TEST_CASE("a gradient may take the memory of its value") {
  Arena arena;
  auto x = slot_of(arena, 8);
  auto* const value = x.value;
  CHECK(arena.target_in_place_of_value(x).data == value);
  CHECK(x.value == nullptr);
}

TEST_CASE("reserved memory is where the gradient is written") {
  Arena arena;
  auto x = slot_of(arena, 8);
  arena.reserve_gradient(&x);
  auto* const reserved = x.reserved;
  CHECK(reserved != nullptr);
  arena.reserve_gradient(&x);
  CHECK(x.reserved == reserved);
  CHECK(arena.target(&x).data == reserved);
  arena.reserve_gradient<float>(nullptr);
}

TEST_CASE("the last producer releases value and gradient") {
  Arena arena;
  auto x = slot_of(arena, 64);
  x.producers = 2;
  auto* const gradient = arena.target(&x).data;
  arena.finish_producer(x);
  CHECK(arena.take<float>(64) != gradient);
  arena.finish_producer(x);
  auto *const one = arena.take<float>(64), *const other = arena.take<float>(64);
  CHECK(((one == gradient && other == x.value) || (one == x.value && other == gradient)));
}
