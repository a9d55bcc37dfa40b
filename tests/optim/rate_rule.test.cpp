// SPDX-License-Identifier: Apache-2.0
#include <lockstep/optim/rate_rule.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <type_traits>
#include <vector>

using namespace lockstep;
using optim::RateRule;

TEST_CASE("a lambda is a rule, by name and shape; the default changes no rate") {
  RateRule const same, rule = [](std::string_view name, std::span<Index const> shape) {
    return name.starts_with("encoder.") ? 0.0 : shape.size() > 1 ? 0.5 : 2.0;
  };
  std::vector<Index> const bias{8}, weight{8, 4};
  CHECK(same("head.weight", weight) == 1);
  CHECK(rule("encoder.weight", weight) == 0);
  CHECK(rule("head.weight", weight) == 0.5);
  CHECK(rule("head.bias", bias) == 2);
}

TEST_CASE("a rule that returns a bool gives 1 or 0") {
  RateRule const heads = [](std::string_view name, std::span<Index const>) { return name.starts_with("head."); };
  CHECK(heads("head.weight", {}) == 1);
  CHECK(heads("encoder.weight", {}) == 0);
}

TEST_CASE("an invalid rate is refused with the parameter's name") {
  std::vector<Index> const shape{8};
  RateRule const below = [](std::string_view, std::span<Index const>) { return -1.0; };
  RateRule const none = [](std::string_view, std::span<Index const>) {
    return std::numeric_limits<double>::infinity();
  };
  CHECK_THROWS_WITH_AS((void)below("head.bias", shape),
                       doctest::Contains("`rates` gives -1 for the parameter \"head.bias\""), ConfigError);
  CHECK_THROWS_AS((void)none("head.bias", shape), ConfigError);
}

TEST_CASE("a rule may capture a number or two, such as a flag's, and stays a plain value") {
  static_assert(std::is_trivially_copyable_v<RateRule>);
  RateRule rule;
  {
    double const encoder = 0.25, head = 3;
    rule = [encoder, head](std::string_view name, std::span<Index const>) {
      return name.starts_with("encoder.") ? encoder : head;
    };
  }
  auto const copy = rule;
  CHECK(copy("encoder.weight", {}) == 0.25);
  CHECK(copy("head.weight", {}) == 3);
  bool yes = true;
  RateRule const choice = [yes](std::string_view, std::span<Index const>) { return yes; };
  CHECK(choice("head.weight", {}) == 1);
  double const bad = -2;
  RateRule const wrong = [bad](std::string_view, std::span<Index const>) { return bad; };
  CHECK_THROWS_AS((void)wrong("head.weight", {}), ConfigError);
}
