// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/keyed_permutation.hpp>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cmath>
#include <unordered_set>
#include <vector>

using lockstep::Index;
using lockstep::KeyedPermutation;
using lockstep::mix;

namespace {

/// Returns how unlikely these counts are if all cells are equally likely, in standard deviations of a normal
/// distribution (chi squared, made normal by Wilson and Hilferty's cube root). A fair shuffle exceeds 5 once in 3.5
/// million.
double normal_deviate(std::vector<int> const& counts, double expected) {
  double chi_squared = 0;
  for (int count : counts) chi_squared += (count - expected) * (count - expected) / expected;
  auto const freedom = static_cast<double>(counts.size() - 1);
  auto const spread = 2 / (9 * freedom);
  return (std::cbrt(chi_squared / freedom) - (1 - spread)) / std::sqrt(spread);
}
constexpr double limit = 5;

KeyedPermutation fresh(Index n, int key) { return KeyedPermutation(n, mix(static_cast<std::uint64_t>(key))); }

}  // namespace

TEST_CASE("every element appears once, for every n up to 800") {
  for (Index n = 0; n <= 800; ++n) {
    KeyedPermutation const p(n, static_cast<std::uint64_t>(n * 77));
    REQUIRE(p.size() == n);
    std::vector<bool> seen(static_cast<std::size_t>(n));
    for (Index i = 0; i < n; ++i) {
      auto const element = p(i);
      REQUIRE(element >= 0);
      REQUIRE(element < n);
      REQUIRE_FALSE(seen[static_cast<std::size_t>(element)]);
      seen[static_cast<std::size_t>(element)] = true;
      REQUIRE(p.inverse(element) == i);
    }
  }
}

TEST_CASE("a batch of elements equals single calls") {
  auto const same = [](KeyedPermutation const& p, Index first, std::size_t count) {
    std::vector<Index> many(count);
    for (auto& each : many) each = first++ % p.size();
    auto const one = many;
    p.replace(many);
    for (std::size_t i = 0; i < count; ++i) {
      if (many[i] != p(one[i])) return false;
    }
    return true;
  };
  for (Index n = 1; n <= 300; ++n) {
    REQUIRE(same(fresh(n, 3), n / 2, static_cast<std::size_t>(n)));
    REQUIRE(same(fresh(1000, 4), n, static_cast<std::size_t>(n)));
  }
  for (int bits : {20, 31, 32, 33, 47, 48}) {
    for (Index n : {(Index{1} << bits) - 1, Index{1} << bits, (Index{1} << bits) + 1}) {
      if (n > KeyedPermutation::largest) continue;
      CHECK(same(fresh(n, bits), 0, 33));
      CHECK(same(fresh(n, bits), n - 40, 40));
    }
  }
  std::vector<Index> none;
  fresh(0, 1).replace(none);
}

TEST_CASE("the inverse undoes the permutation, for any n up to 2^48") {
  CHECK(rc::check("inverse(p(i)) == i and p(i) is in [0, n)", [] {
    auto const bits = *rc::gen::inRange(1, 49);
    auto const n = *rc::gen::inRange<Index>(1, (Index{1} << bits) + 1);
    auto const i = *rc::gen::inRange<Index>(0, n);
    KeyedPermutation const p(n, *rc::gen::arbitrary<std::uint64_t>());
    auto const element = p(i);
    RC_ASSERT(element >= 0);
    RC_ASSERT(element < n);
    RC_ASSERT(p.inverse(element) == i);
    RC_ASSERT(p(p.inverse(i)) == i);
  }));
}

TEST_CASE("the first and last elements of large ranges") {
  for (Index n : {(Index{1} << 20) + 1, (Index{1} << 30) - 1, (Index{1} << 32) + 1, (Index{1} << 47) + 1,
                  KeyedPermutation::largest - 1, KeyedPermutation::largest}) {
    KeyedPermutation const p(n, 3);
    std::unordered_set<Index> elements;
    for (Index i = 0; i < 10'000; ++i) {
      for (Index at : {i, n - 1 - i}) {
        auto const element = p(at);
        CHECK((element >= 0 && element < n));
        CHECK(p.inverse(element) == at);
        elements.insert(element);
      }
    }
    CHECK(elements.size() == 20'000);
  }
}

TEST_CASE("one key gives one order, another key another one") {
  auto const order = [](std::uint64_t key) {
    KeyedPermutation const p(1000, key);
    std::vector<Index> out;
    for (Index i = 0; i < 1000; ++i) out.push_back(p(i));
    return out;
  };
  CHECK(order(1) == order(1));
  CHECK(order(1) != order(2));
  // The order is part of what a checkpoint resumes: these numbers never change.
  KeyedPermutation const p(1'000'003, 42);
  CHECK(std::vector<Index>{p(0), p(1), p(2), p(1'000'002)} == std::vector<Index>{461889, 491402, 394136, 622230});
  CHECK(KeyedPermutation((Index{1} << 47) + 1, 42)(0) == 33'094'230'927'977);
  CHECK(KeyedPermutation(7, 42)(6) == 5);
}

TEST_CASE("each element is equally likely at each position, and so is each difference between adjacent elements") {
  for (Index n : {2, 3, 5, 10, 16, 17, 18, 33, 100, 1025}) {
    CAPTURE(n);
    auto const size = static_cast<std::size_t>(n);
    int const keys = static_cast<int>(std::min<Index>(n * n * 40, 400'000)) + 4000;
    std::vector<int> at_middle(size), difference(size), next_key(size);
    for (int key = 0; key < keys; ++key) {
      auto const p = fresh(n, 2 * key), q = fresh(n, 2 * key + 1);
      ++at_middle[static_cast<std::size_t>(p(n / 2))];
      ++difference[static_cast<std::size_t>((p(1) + n - p(0)) % n)];
      ++next_key[static_cast<std::size_t>((q(n / 3) + n - p(n / 3)) % n)];
    }
    CHECK(normal_deviate(at_middle, static_cast<double>(keys) / static_cast<double>(n)) < limit);
    CHECK(normal_deviate(next_key, static_cast<double>(keys) / static_cast<double>(n)) < limit);
    CHECK(difference[0] == 0);
    if (n > 2) {
      difference.erase(difference.begin());
      CHECK(normal_deviate(difference, static_cast<double>(keys) / static_cast<double>(n - 1)) < limit);
    }
  }
}

TEST_CASE("every complete order of a few elements is equally likely") {
  constexpr Index n = 5;
  constexpr int keys = 24'000;  // 200 for each order
  std::vector<int> orders(120);
  for (int key = 0; key < keys; ++key) {
    auto const p = fresh(n, key);
    Index number = 0;  // in Lehmer's code: for each element, how many smaller ones follow
    for (Index i = 0; i < n; ++i) {
      Index smaller = 0;
      for (Index j = i + 1; j < n; ++j) smaller += p(j) < p(i);
      number = number * (n - i) + smaller;
    }
    ++orders[static_cast<std::size_t>(number)];
  }
  CHECK(normal_deviate(orders, 200) < limit);
}

TEST_CASE("adjacent elements of a long order are independent, in a row and in a column of the grid") {
  // 2^20 elements form a grid of 1,024 columns. Pairs of elements are equally likely in each of 64 x 64 cells. So are
  // their differences, which one multiplication fewer per round would show.
  constexpr Index n = Index{1} << 20, parts = 64;
  auto const p = fresh(n, 1);
  for (Index distance : {1, 2, 1024, 1025}) {
    CAPTURE(distance);
    std::vector<int> pairs(parts * parts), differences(parts * parts);
    for (Index i = 0; i < 200'000; ++i) {
      auto const a = p(i), b = p(i + distance);
      ++pairs[static_cast<std::size_t>(a * parts / n * parts + b * parts / n)];
      ++differences[static_cast<std::size_t>((b - a + n) % n * (parts * parts) / n)];
    }
    auto const expected = 200'000.0 / static_cast<double>(parts * parts);
    CHECK(normal_deviate(pairs, expected) < limit);
    CHECK(normal_deviate(differences, expected) < limit);
  }
}

TEST_CASE("fixed points and ascents are as frequent as in a fair shuffle") {
  // One of n elements stays in place on average, with variance 1; (n - 1) / 2 steps ascend, with variance (n + 1) / 12.
  constexpr Index n = 5000;
  constexpr int keys = 400;
  double fixed = 0, ascents = 0;
  for (int key = 0; key < keys; ++key) {
    auto const p = fresh(n, key);
    Index last = -1;
    for (Index i = 0; i < n; ++i) {
      auto const element = p(i);
      fixed += element == i;
      ascents += i > 0 && element > last;
      last = element;
    }
  }
  CHECK(std::abs(fixed / keys - 1) < limit * std::sqrt(1.0 / keys));
  CHECK(std::abs(ascents / keys - (n - 1) / 2.0) < limit * std::sqrt((n + 1) / 12.0 / keys));
}

TEST_CASE("orders of consecutive keys are independent") {
  // Two shuffles agree at one position on average, with variance 1.
  constexpr int pairs = 2000;
  double agreements = 0;
  for (std::uint64_t key = 0; key < pairs; ++key) {
    KeyedPermutation const p(100, key), q(100, key + 1);
    for (Index i = 0; i < 100; ++i) agreements += p(i) == q(i);
  }
  CHECK(std::abs(agreements / pairs - 1) < limit * std::sqrt(1.0 / pairs));
}

TEST_CASE("sizes out of range are refused") {
  CHECK_THROWS_WITH_AS(KeyedPermutation(-1, 0), doctest::Contains("-1 elements"), lockstep::ConfigError);
  CHECK_THROWS_AS(KeyedPermutation(KeyedPermutation::largest + 1, 0), lockstep::ConfigError);
}
