// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/option_descriptor.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include <lockstep/core/error.hpp>

using namespace lockstep;

namespace {

enum class Shape { round, square };
constexpr OptionWord shapes[] = {{"round", Shape::round}, {"square", Shape::square}};

struct Settings {
  bool loud = false;
  int count = 3;
  Index steps = 0;
  std::uint64_t seed = 1;
  std::uint16_t port = 0;
  double rate = 0.1, share = 0;
  std::string title = {};
  Shape shape = Shape::round;
  std::optional<double> norm = {};
};

template <class Owner>
OptionList describe(Owner& s) {
  return {"settings",
          {{.name = "loud", .variable = s.loud},
           {.name = "count", .variable = s.count, .range = {1, 8}},
           {.name = "steps", .variable = s.steps, .range = {0}, .recorded = Recorded::if_changed},
           {.name = "seed", .variable = s.seed},
           {.name = "port", .variable = s.port},
           {.name = "rate", .variable = s.rate, .range = {.least = 0, .rule = "at least 0, and 0 stops"}},
           {.name = "share", .variable = s.share, .range = {0, 1, true}, .recorded = Recorded::if_changed},
           {.name = "title", .variable = s.title, .recorded = Recorded::if_changed},
           {.name = "shape", .variable = {s.shape, shapes}, .recorded = Recorded::if_changed},
           {.name = "norm", .variable = s.norm, .range = {0}}}};
}

std::string refused(Settings const& settings) {
  try {
    describe(settings).check_ranges();
  } catch (ConfigError const& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a variable of any type is read, written and shown") {
  Settings settings;
  auto const options = describe(settings);
  auto const text = [&](char const* name) { return options.at(name).variable.text(); };
  CHECK(text("loud") == "false");
  CHECK(text("count") == "3");
  CHECK(text("rate") == "0.1");
  CHECK(text("title") == "");
  CHECK(text("shape") == "round");
  CHECK(text("norm") == "");
  options.at("loud").variable.write(Index{1});
  options.at("port").variable.write(Index{65535});
  options.at("rate").variable.write(1e-3);
  options.at("title").variable.write("night");
  options.at("shape").variable.write(Index{1});
  options.at("norm").variable.write(2.0);
  auto const most = std::numeric_limits<std::uint64_t>::max();
  options.at("seed").variable.write(static_cast<Index>(most));
  CHECK(settings.loud);
  CHECK(settings.port == 65535);
  CHECK(settings.rate == 1e-3);
  CHECK(settings.title == "night");
  CHECK(settings.shape == Shape::square);
  CHECK(settings.norm == 2);
  CHECK(settings.seed == most);
  CHECK(text("seed") == "18446744073709551615");
  CHECK(text("loud") == "true");
  CHECK(text("shape") == "square");
  options.at("norm").variable.write({});
  options.at("count").variable.write({});
  CHECK_FALSE(settings.norm);
  CHECK(settings.count == 3);
  CHECK_THROWS_AS(options.at("count").variable.write(0.5), std::logic_error);
  CHECK(options.find("colour") == nullptr);
  CHECK_THROWS_WITH_AS(static_cast<void>(options.at("colour")), "settings has no option colour", std::out_of_range);
}

TEST_CASE("an option outside of its range is refused, with name, value and rule") {
  CHECK(refused({}) == "");
  CHECK(refused({.count = 0}) == "settings: count is 0; it must be at least 1 and at most 8");
  CHECK(refused({.count = 9}) == "settings: count is 9; it must be at least 1 and at most 8");
  CHECK(refused({.steps = -1}) == "settings: steps is -1; it must be at least 0");
  CHECK(refused({.rate = -0.5}) == "settings: rate is -0.5; it must be at least 0, and 0 stops");
  CHECK(refused({.rate = std::nan("")}) == "settings: rate is nan; it must be at least 0, and 0 stops");
  CHECK(refused({.share = 1}) == "settings: share is 1; it must be at least 0 and below 1");
  CHECK(refused({.share = 0.999}) == "");
  CHECK(refused({.norm = -1}) == "settings: norm is -1; it must be at least 0");
}

TEST_CASE("options are set from options of equal names that have a content") {
  struct Flags {
    std::optional<int> count;
    Index steps = 5;
    std::string title;
    std::optional<double> rate = 0.5;
    double other = 1;
  } flags;
  Settings settings{.title = "day"};
  describe(settings).assign({"flags",
                             {{.name = "count", .variable = flags.count},
                              {.name = "steps", .variable = flags.steps},
                              {.name = "title", .variable = flags.title},
                              {.name = "rate", .variable = flags.rate},
                              {.name = "other", .variable = flags.other}}});
  CHECK(settings.count == 3);
  CHECK(settings.steps == 5);
  CHECK(settings.title == "day");
  CHECK(settings.rate == 0.5);
}

TEST_CASE("only changed options are recorded, by name") {
  using Recording = std::vector<std::pair<std::string, std::string>>;
  Settings const initial;
  Settings settings;
  CHECK(describe(settings).changed(describe(initial)).empty());
  settings.count = 4;
  settings.steps = 2;
  settings.shape = Shape::square;
  CHECK(describe(settings).changed(describe(initial)) == Recording{{"steps", "2"}, {"shape", "square"}});
}
