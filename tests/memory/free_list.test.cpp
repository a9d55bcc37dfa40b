// SPDX-License-Identifier: Apache-2.0
#include <lockstep/memory/free_list.hpp>

#include <doctest/doctest.h>

#include <rapidcheck.h>

#include <vector>

using lockstep::memory::FreeList;

TEST_CASE("the smallest sufficient part is returned, from its beginning") {
  std::byte arena[1024];
  FreeList list;
  CHECK(list.take(1) == nullptr);
  list.give(arena, 256, 0);
  list.give(arena + 512, 128, 0);
  CHECK(list.take(257) == nullptr);
  CHECK(list.take(65) == arena + 512);
  CHECK(list.take(65) == arena);
  CHECK(list.take(128) == arena + 128);
  CHECK(list.take(1) == nullptr);
  list.give(arena, 1, 0);  // a whole line
  CHECK(list.take(64) == arena);
  list.give(arena, 64, 0);
  static_cast<void>(list.begin_scope());
  list.clear();
  CHECK(list.take(64) == nullptr);
  list.give(arena, 0, 0);  // nothing
  CHECK(list.take(0) == nullptr);
  list.give(arena, 64, 0);
  CHECK(list.take(64) == arena);
}

TEST_CASE("adjacent parts are merged, in any order, but never across chunks") {
  std::byte arena[512];
  for (std::vector<int> const& order : {std::vector<int>{0, 1, 2}, {2, 1, 0}, {0, 2, 1}, {1, 0, 2}}) {
    FreeList list;
    for (int i : order) list.give(arena + 128 * i, 128, 0);
    CHECK(list.take(384) == arena);
  }
  for (int const first : {0, 1}) {
    FreeList list;
    list.give(arena + 128 * first, 128, static_cast<std::size_t>(first));
    list.give(arena + 128 * (1 - first), 128, static_cast<std::size_t>(1 - first));
    CHECK(list.take(256) == nullptr);
    CHECK(list.take(128) == arena);
  }
}

TEST_CASE("in an inner scope, only parts freed inside are used, and dropped at its end") {
  std::byte arena[512];
  FreeList list;
  list.give(arena + 128, 128, 0);
  auto const outer = list.begin_scope();
  CHECK(list.take(64) == nullptr);
  list.give(arena + 256, 64, 0);
  CHECK(list.take(64) == arena + 256);  // not merged with the part before it outside
  list.give(arena, 128, 0);
  CHECK(list.take(256) == nullptr);
  auto const inner = list.begin_scope();
  CHECK(list.take(64) == nullptr);
  list.give(arena + 256, 64, 0);
  list.end_scope(inner);
  CHECK(list.take(128) == arena);
  CHECK(list.take(64) == nullptr);
  list.give(arena, 128, 0);
  list.end_scope(outer);
  CHECK(list.take(256) == nullptr);
  CHECK(list.take(128) == arena + 128);
}

TEST_CASE("no part is returned twice, and all is one part again after everything is freed") {
  CHECK(rc::check([](std::vector<std::uint8_t> const& moves) {
    constexpr std::size_t lines = 64;
    std::vector<std::byte> arena(lines * 64);
    std::vector<int> taken(lines, 0);
    struct Piece {
      std::byte* data;
      std::size_t lines;
    };
    std::vector<Piece> pieces;
    FreeList list;
    list.give(arena.data(), arena.size(), 0);
    auto const mark = [&](Piece piece, int by) {
      for (std::size_t i = 0; i < piece.lines; ++i) {
        auto& count = taken[static_cast<std::size_t>(piece.data - arena.data()) / 64 + i];
        count += by;
        RC_ASSERT(count == 0 || count == 1);
      }
    };
    auto const give = [&](std::size_t which) {
      auto const piece = pieces[which];
      mark(piece, -1);
      list.give(piece.data, piece.lines * 64 - 63, 0);
      pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(which));
    };
    for (std::size_t const move : moves) {
      if (move % 3 == 0 && !pieces.empty()) {
        give(move % pieces.size());
      } else if (auto* const data = list.take((move % 16 + 1) * 64)) {
        pieces.push_back({data, move % 16 + 1});
        mark(pieces.back(), 1);
      }
    }
    while (!pieces.empty()) give(pieces.size() / 2);
    RC_ASSERT(list.take(arena.size()) == arena.data());
  }));
}
