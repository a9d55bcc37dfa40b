// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/tree_sum.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace lockstep;

namespace {
struct Term {  // records the order of a sum
  std::string text;
  friend Term operator+(Term const& a, Term const& b) { return {"(" + a.text + b.text + ")"}; }
};
}  // namespace

TEST_CASE("the tree splits at the largest power of two below the count") {
  auto spell = [](int n) { return tree_sum(n, [](int i) { return Term{std::to_string(i)}; }).text; };
  CHECK(spell(1) == "0");
  CHECK(spell(2) == "(01)");
  CHECK(spell(3) == "((01)2)");
  CHECK(spell(4) == "((01)(23))");
  CHECK(spell(5) == "(((01)(23))4)");
  CHECK(spell(6) == "(((01)(23))(45))");
  CHECK(spell(8) == "(((01)(23))((45)(67)))");
}

TEST_CASE("a sum of arrays has the bits of its elements' sums, in the requested range only") {
  constexpr std::size_t length = 600;  // more than two blocks
  for (int n = 1; n <= 17; ++n) {
    std::vector<std::vector<float>> data(static_cast<std::size_t>(n), std::vector<float>(length));
    float x = 0.1f;
    for (auto& row : data)
      for (auto& e : row) e = x = x * 1.37f - static_cast<float>(static_cast<int>(x * 1.37f)) + 0.01f;
    auto const before = data;
    std::vector<float*> rows;
    for (auto& row : data) rows.push_back(row.data());
    tree_sum_into_first<float>(rows, 1, length - 1);
    for (std::size_t i = 0; i < length; ++i) {
      auto const sum = tree_sum(n, [&](int r) { return before[static_cast<std::size_t>(r)][i]; });
      CHECK(data[0][i] == (i == 0 || i == length - 1 ? before[0][i] : sum));
    }
    for (std::size_t r = 1; r < data.size(); ++r) CHECK(data[r] == before[r]);
  }
}
