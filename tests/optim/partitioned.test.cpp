// SPDX-License-Identifier: Apache-2.0
#include <lockstep/optim/partitioned.hpp>

#include <doctest/doctest.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <optim/arena.hpp>

#include <lockstep/optim/adamw.hpp>
#include <lockstep/optim/lamb.hpp>
#include <lockstep/optim/muon.hpp>
#include <lockstep/optim/sgd.hpp>

using namespace lockstep;
using optim::AdamW;
using optim::LAMB;
using optim::Muon;
using optim::Partitioned;
using optim::SGD;

// tests/parallel/replica/optimizer_state.test.cpp tests the steps.
static_assert(optim::Optimizer<Partitioned<Muon, AdamW>> && optim::Optimizer<Partitioned<SGD, AdamW>, double>);
static_assert(optim::Optimizer<Partitioned<SGD, Partitioned<Muon, AdamW>>>);
static_assert(optim::parts<SGD>() == 1 && optim::parts<Partitioned<SGD, Partitioned<Muon, AdamW>>>() == 3);
static_assert(Partitioned<SGD, Muon>::states == 1 && Partitioned<SGD, AdamW>::states == 2);
static_assert(optim::steps_whole_parameters<Partitioned<Muon, AdamW>>());
static_assert(optim::steps_whole_parameters<Partitioned<SGD, LAMB>>());
static_assert(!optim::steps_whole_parameters<Partitioned<SGD, AdamW>>());
static_assert(!optim::averages<Partitioned<SGD, AdamW>>);
static_assert(optim::averages<Partitioned<optim::Averaged<SGD>, optim::Averaged<AdamW>>>);

namespace {

struct Entry {
  std::string name;
  std::vector<Index> shape;
  bool frozen = false;
};
Entry const matrix{"h.0.weight", {3, 4}}, bias{"h.0.bias", {3}}, head{"head.weight", {9, 4}};

bool hidden(std::string_view name, std::span<Index const> shape) { return shape.size() == 2 && name.starts_with("h."); }
bool vectors(std::string_view, std::span<Index const> shape) { return shape.size() == 1; }

struct Layout {
  std::vector<Entry> all;
  [[nodiscard]] std::vector<Entry> const& entries() const { return all; }
};

/// The name of the optimizer that updates a parameter.
template <class Optimizer>
std::string name_for(Optimizer const& optimizer, Entry const& entry) {
  return optim::with_part(optimizer, optim::part_of(optimizer, entry),
                          []<class Part>(Part const&) { return optim::name_of<Part>(); });
}

}  // namespace

TEST_CASE("the rule selects the optimizer of a parameter by name and shape, also in a nested one") {
  Partitioned const two{Muon{}, AdamW{}, hidden};
  CHECK(name_for(two, matrix) == "Muon");
  CHECK(name_for(two, bias) == "AdamW");
  CHECK(name_for(two, head) == "AdamW");
  Index const least = matrix.shape[1];
  Partitioned const three{Muon{}, Partitioned{SGD{}, AdamW{}, vectors},
                          [least](std::string_view, std::span<Index const> shape) { return shape[0] >= least; }};
  CHECK(name_for(three, head) == "Muon");
  CHECK(name_for(three, bias) == "SGD");
  CHECK(name_for(three, matrix) == "AdamW");
  CHECK(optim::part_of(three, head) == 0);
  CHECK(optim::part_of(three, bias) == 1);
  CHECK(optim::part_of(three, matrix) == 2);
  CHECK(optim::name_of<decltype(three)>() == "Muon and SGD and AdamW");
}

TEST_CASE("rates keep their ratio to the first, and rules of both optimizers apply") {
  Partitioned both{
      Muon{.learning_rate = 0.02, .decays = [](std::string_view, std::span<Index const>) { return 0.5; }},
      AdamW{.learning_rate = 0.005,
            .decays = optim::DecayRule::matrices,
            .rates = [](std::string_view name, std::span<Index const>) { return name == "head.weight" ? 2.0 : 1.0; }},
      hidden};
  CHECK(both.learning_rate == 0.02);
  CHECK(optim::rate_of(both, matrix) == 1);
  CHECK(optim::rate_of(both, bias) == 0.25);
  CHECK(optim::rate_of(both, head) == 0.5);
  CHECK(optim::rate_of(both, Entry{"h.1.bias", {3}, true}) == 0);
  CHECK(optim::rate_of(both, Entry{"h.1.weight", {3, 3}, true}) == 0);
  CHECK(optim::decay_of(both, matrix) == 0.5);
  CHECK(optim::decay_of(both, bias) == 0);
  CHECK(optim::decay_of(both, head) == 1);
  both.learning_rate = 0;  // as --doctor sets it
  CHECK(optim::rate_of(both, bias) == 0.25);
  CHECK_NOTHROW(both.check());
}

TEST_CASE("settings of both are described and checked") {
  CHECK(lockstep_test::described(Partitioned{SGD{.momentum = 0.5}, SGD{.weight_decay = 0.25}, hidden}) ==
        "first momentum = 0.500000 first kind of momentum = 0.000000 first weight decay = 0.000000 "
        "first untouched rows = 0.000000 second momentum = 0.000000 second kind of momentum = 0.000000 "
        "second weight decay = 0.250000 second untouched rows = 0.000000 ");
  auto const refused = [](SGD const& first, SGD const& second, char const* message) {
    CHECK_THROWS_WITH_AS((Partitioned{first, second, hidden}.check()), message, ConfigError);
  };
  refused({.momentum = 2}, {}, "SGD: momentum is 2; it must be at least 0 and below 1");
  refused({}, {.momentum = 2}, "SGD: momentum is 2; it must be at least 0 and below 1");
  auto const zero =
      "Partitioned: the learning rate of the first optimizer is 0, and that of the second 0.1; the first must be above "
      "0, "
      "since rates keep their ratio; to change none of its parameters, use its `rates`";
  refused({.learning_rate = 0}, {.learning_rate = 0.1}, zero);
  CHECK_NOTHROW((Partitioned{SGD{}, SGD{.learning_rate = 0}, hidden}.check()));
}

TEST_CASE("each optimizer checks its own parameters, except frozen ones") {
  CHECK_NOTHROW(optim::check_settings(Partitioned{Muon{}, AdamW{}, hidden}, Layout{{matrix, bias, head}}));
  CHECK_NOTHROW(optim::check_settings(Muon{}, Layout{{matrix, {"h.0.bias", {3}, true}}}));
  CHECK_THROWS_WITH_AS(optim::check_settings(Muon{}, Layout{{matrix, bias}}),
                       doctest::Contains("Muon: the parameter \"h.0.bias\" is [3]; Muon updates matrices"),
                       ConfigError);
  CHECK_THROWS_WITH_AS(optim::check_settings(Partitioned{SGD{}, Muon{}, hidden}, Layout{{matrix, bias}}),
                       doctest::Contains("\"h.0.bias\" is [3]"), ConfigError);
}

TEST_CASE("the name in checkpoints depends on the parameters that the rule selects, not on their number alone") {
  Layout const layout{{matrix, bias, head}};
  auto const name = [&](auto rule) { return Partitioned{Muon{}, AdamW{}, rule}.name_for(layout); };
  CHECK(name(hidden).starts_with("Muon and AdamW for 1 and 2 parameters (checksum "));
  CHECK(name(hidden) == name([](std::string_view name, std::span<Index const>) { return name == "h.0.weight"; }));
  CHECK(name(hidden) != name([](std::string_view name, std::span<Index const>) { return name == "head.weight"; }));
  CHECK(name([](std::string_view, std::span<Index const>) {
          return true;
        }).starts_with("Muon and AdamW for 3 and 0 parameters"));
}
