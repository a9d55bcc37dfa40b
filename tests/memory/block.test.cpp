// SPDX-License-Identifier: Apache-2.0
#include <lockstep/memory/block.hpp>

#include <doctest/doctest.h>

#include <type_traits>
#include <utility>

using lockstep::memory::Block;

namespace {
std::byte storage[16];
Block counted(int& released) {
  return {storage, sizeof storage,
          [](void* owner, std::byte* data, std::size_t bytes) noexcept {
            if (data == storage && bytes == sizeof storage) ++*static_cast<int*>(owner);
          },
          &released};
}
}  // namespace

TEST_CASE("memory is freed once, by its owner, with its size and alignment") {
  int released = 0;
  {
    auto block = counted(released);
    CHECK(block.data() == storage);
    CHECK(block.bytes() == sizeof storage);
    CHECK(released == 0);
  }
  CHECK(released == 1);
}

TEST_CASE("a move transfers ownership") {
  static_assert(!std::is_copy_constructible_v<Block> && !std::is_copy_assignable_v<Block>);
  static_assert(std::is_nothrow_move_constructible_v<Block> && std::is_nothrow_move_assignable_v<Block>);
  int first = 0, second = 0;
  {
    auto a = counted(first);
    auto b = std::move(a);
    CHECK(first == 0);
    CHECK(b.data() == storage);
    auto c = counted(second);
    c = std::move(b);
    CHECK(second == 1);  // c's old memory is freed at once
    CHECK(first == 0);
  }
  CHECK(first == 1);
  CHECK(second == 1);
}

TEST_CASE("swapping and empty blocks") {
  int released = 0;
  Block empty;
  CHECK(empty.data() == nullptr);
  CHECK(empty.bytes() == 0);
  {
    auto block = counted(released);
    block.swap(empty);
    CHECK(block.data() == nullptr);
  }
  CHECK(released == 0);
  empty = Block();
  CHECK(released == 1);
  Block borrowed(storage, sizeof storage, nullptr);  // no resource is called
  CHECK(borrowed.data() == storage);
}
