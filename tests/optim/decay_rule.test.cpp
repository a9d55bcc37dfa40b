// SPDX-License-Identifier: Apache-2.0
#include <lockstep/optim/decay_rule.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace lockstep;
using optim::DecayRule;

TEST_CASE("matrices are parameters of two and more axes; all is the default") {
  std::vector<Index> const bias{8}, weight{8, 4}, filter{8, 4, 3}, scalar{};
  DecayRule const matrices = DecayRule::matrices, all;
  CHECK_FALSE(matrices("linear.bias", bias));
  CHECK_FALSE(matrices("scale", scalar));
  CHECK(matrices("linear.weight", weight));
  CHECK(matrices("conv.weight", filter));
  for (auto const& shape : {bias, weight, filter, scalar}) CHECK(all("x", shape));
}

TEST_CASE("a lambda is a rule, by name and shape") {
  DecayRule const rule = [](std::string_view name, std::span<Index const> shape) {
    return shape.size() >= 2 && !name.starts_with("embedding.");
  };
  std::vector<Index> const table{8, 4};
  CHECK_FALSE(rule("embedding.token", table));
  CHECK(rule("head.weight", table));
}

TEST_CASE("an optimizer without a rule decays every parameter") {
  struct Entry {
    std::string_view name;
    std::vector<Index> shape;
  };
  struct Plain {};
  struct Ruled {
    DecayRule decays = DecayRule::matrices;
  };
  CHECK(optim::decay_of(Plain{}, Entry{"bias", {8}}) == 1);
  CHECK(optim::decay_of(Ruled{}, Entry{"bias", {8}}) == 0);
  CHECK(optim::decay_of(Ruled{}, Entry{"weight", {8, 4}}) == 1);
}

TEST_CASE("a rule may return a factor of the decay") {
  DecayRule const rule = [](std::string_view name, std::span<Index const>) { return name == "head" ? 2.5 : 0.5; };
  CHECK(rule("head", {}) == 2.5);
  CHECK(rule("body", {}) == 0.5);
  DecayRule const below = [](std::string_view, std::span<Index const>) { return -1.0; };
  CHECK_THROWS_WITH_AS((void)below("head.bias", {}),
                       "optimizer: `decays` gives -1 for the parameter \"head.bias\"; it must be a finite number "
                       "of at least 0",
                       ConfigError);
}
