// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/nearest.hpp>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

using lockstep::edit_distance;
using lockstep::nearest;

TEST_CASE("edit distances") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("abc", "") == 3);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("epochs", "epohcs") == 1);  // adjacent letters swapped
  CHECK(edit_distance("ca", "abc") == 3);         // a swapped pair is not edited again
  CHECK(edit_distance("Batch_Size", "batch-size") == 0);
  CHECK(edit_distance("single", "shingle") == 1);
}

TEST_CASE("the edit distance is a metric") {
  using Word = std::string;
  auto const word = rc::gen::container<Word>(rc::gen::element('a', 'b', 'c'));
  CHECK(rc::check("only equal words have distance 0; the distance is symmetric; lengths bound it", [&] {
    auto const a = *word, b = *word;
    auto const distance = edit_distance(a, b);
    RC_ASSERT((distance == 0) == (a == b));
    RC_ASSERT(distance == edit_distance(b, a));
    auto const longer = static_cast<int>(std::max(a.size(), b.size()));
    RC_ASSERT(distance <= longer);
    RC_ASSERT(distance >= longer - static_cast<int>(std::min(a.size(), b.size())));
  }));
  CHECK(rc::check("adding one letter has distance 1", [&] {
    auto const a = *word;
    auto b = a;
    b.insert(*rc::gen::inRange<std::size_t>(0, a.size() + 1), 1, 'd');
    RC_ASSERT(edit_distance(a, b) == 1);
  }));
}

TEST_CASE("the nearest name is found, the first of equally near ones, and nothing among no names") {
  std::vector<std::string> const flags{"--batch-size", "--epochs", "--seed", "--resume"};
  CHECK(nearest("--epoch", flags) == "--epochs");
  CHECK(nearest("--bacth_size", flags) == "--batch-size");
  CHECK(nearest("--sed", flags) == "--seed");
  CHECK(nearest("ab", std::vector<char const*>{"ax", "ay"}) == "ax");
  CHECK(nearest("x", std::vector<std::string_view>{}).empty());
}
