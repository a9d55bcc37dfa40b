// SPDX-License-Identifier: Apache-2.0
#include <lockstep/app/command.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace lockstep;

namespace {

struct Flags {
  int width = 16;
  double rate = 0.5;
  std::uint64_t seed = 7;
  std::optional<int> depth;
  std::string path;
  int mode = 1;
  bool dry = false;

  bool parse(std::vector<char const*> arguments) {
    app::Command command("about the program");
    command.add("--width,--breadth", width, 1, 64, "How wide");
    command.add("--rate", rate, 0, 1, "How fast");
    command.add("--seed", seed, 0, std::numeric_limits<std::uint64_t>::max(), "Of chance");
    command.add("--depth", depth, 1, 9, "How deep");
    command.add("--path", path, "Where");
    command.add("--mode", mode, {{"slow", 1}, {"fast", 2}}, "How");
    command.add("--dry", dry, "Whether");
    arguments.insert(arguments.begin(), "program");
    bool const run = command.parse(static_cast<int>(arguments.size()), arguments.data());
    help = command.help();
    return run;
  }
  std::string refused(std::vector<char const*> arguments) {
    try {
      parse(std::move(arguments));
    } catch (ConfigError const& error) {
      return error.what();
    }
    return "";
  }
  std::string help;
};

bool contains(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("flags write into their variables, and what is not given keeps its default") {
  Flags flags;
  CHECK(flags.parse({"--width", "32", "--rate=0.25", "--path", "a b", "--mode", "fast"}));
  CHECK(flags.width == 32);
  CHECK(flags.rate == 0.25);
  CHECK(flags.path == "a b");
  CHECK(flags.mode == 2);
  CHECK(flags.seed == 7);
  CHECK_FALSE(flags.depth.has_value());
  CHECK_FALSE(flags.dry);
  CHECK(flags.parse({"--dry", "--width", "8"}));
  CHECK(flags.dry);
  CHECK(flags.width == 8);
  CHECK(flags.parse({"--breadth", "8", "--depth", "9", "--seed", "18446744073709551615"}));
  CHECK(flags.width == 8);
  CHECK(flags.depth == 9);
  CHECK(flags.seed == 18446744073709551615u);
}

TEST_CASE("--help says what each flag takes, and asks not to run") {
  Flags flags;
  CHECK_FALSE(flags.parse({"--help"}));
  CHECK(contains(flags.help, "about the program"));
  CHECK(contains(flags.help, "a whole number from 1 to 64; default 16"));
  CHECK(contains(flags.help, "a number from 0 to 1; default 0.5"));
  CHECK(contains(flags.help, "slow, fast"));
}

TEST_CASE("a value that does not fit is refused with flag, value and range") {
  Flags flags;
  for (char const* text : {"0", "65", "-3", "1.5", "many", "", "16x", " 16", "99999999999999999999"}) {
    auto const sentence = flags.refused({"--width", text});
    CAPTURE(text);
    CHECK(contains(sentence, "--width"));
    CHECK(contains(sentence, text));
    CHECK(contains(sentence, "a whole number from 1 to 64"));
  }
  for (char const* text : {"nan", "inf", "-inf", "-0.1", "1.01", "fast", "0x1p-1"}) {
    auto const sentence = flags.refused({"--rate", text});
    CAPTURE(text);
    CHECK(contains(sentence, "--rate"));
    CHECK(contains(sentence, "a number from 0 to 1"));
  }
  CHECK(contains(flags.refused({"--seed", "-1"}), "a whole number of 0 or more"));
  CHECK(contains(flags.refused({"--mode", "fats"}), "must be one of slow, fast; the nearest is fast"));
  CHECK(contains(flags.refused({"--path", ""}), "--path ''"));
}

TEST_CASE("an unknown flag is refused with the nearest known one") {
  Flags flags;
  CHECK(contains(flags.refused({"--widht", "3"}), "unknown flag --widht; the nearest is --width"));
  CHECK(contains(flags.refused({"--braedth=3"}), "unknown flag --braedth; the nearest is --breadth"));
  CHECK(contains(flags.refused({"-w", "3"}), "unknown flag -w"));
  CHECK(contains(flags.refused({"file.csv"}), "unexpected argument \"file.csv\""));
  CHECK(contains(flags.refused({"--width", "3", "--"}), ""));
}

TEST_CASE("a flag without its value, or given twice, is refused") {
  Flags flags;
  CHECK(contains(flags.refused({"--width"}), "--width: a flag takes one value"));
  CHECK(contains(flags.refused({"--width", "3", "--width", "4"}), "--width: a flag takes one value and is given once"));
  CHECK(contains(flags.refused({"--width", "3", "--breadth", "4"}), "once"));
}
