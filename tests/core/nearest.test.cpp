// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/nearest.hpp>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

using lockstep::edit_distance;
using lockstep::nearest;

TEST_CASE("distances") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("abc", "") == 3);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("epochs", "epohcs") == 1);  // neighbours swapped
  CHECK(edit_distance("ca", "abc") == 3);         // a swapped pair is not edited again
  CHECK(edit_distance("Batch_Size", "batch-size") == 0);
  CHECK(edit_distance("single", "shingle") == 1);
}

TEST_CASE("laws of the distance") {
  using Word = std::string;
  auto const word = rc::gen::container<Word>(rc::gen::element('a', 'b', 'c'));
  CHECK(rc::check("equal words only are 0 apart; it is the same both ways; lengths bound it", [&] {
    auto const a = *word, b = *word;
    auto const distance = edit_distance(a, b);
    RC_ASSERT((distance == 0) == (a == b));
    RC_ASSERT(distance == edit_distance(b, a));
    auto const longer = static_cast<int>(std::max(a.size(), b.size()));
    RC_ASSERT(distance <= longer);
    RC_ASSERT(distance >= longer - static_cast<int>(std::min(a.size(), b.size())));
  }));
  CHECK(rc::check("one letter added is 1 apart", [&] {
    auto const a = *word;
    auto b = a;
    b.insert(*rc::gen::inRange<std::size_t>(0, a.size() + 1), 1, 'd');
    RC_ASSERT(edit_distance(a, b) == 1);
  }));
}

TEST_CASE("the nearest name, the first of equals, nothing of nothing") {
  std::vector<std::string> const flags{"--batch-size", "--epochs", "--seed", "--resume"};
  CHECK(nearest("--epoch", flags) == "--epochs");
  CHECK(nearest("--bacth_size", flags) == "--batch-size");
  CHECK(nearest("--sed", flags) == "--seed");
  CHECK(nearest("ab", std::vector<char const*>{"ax", "ay"}) == "ax");
  CHECK(nearest("x", std::vector<std::string_view>{}).empty());
}
