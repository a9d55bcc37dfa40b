// SPDX-License-Identifier: Apache-2.0
#include <lockstep/app/command.hpp>

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "../temporary_folder.hpp"

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
  std::vector<std::string> items;
  std::vector<std::string> given;
  std::vector<std::pair<std::string, std::string>> values, settings;

  bool parse(std::vector<char const*> arguments) {
    app::Command command("about the program");
    command.add("--width,--breadth", width, 1, 64, "How wide");
    command.add("--rate", rate, 0, 1, "How fast");
    command.add("--seed", seed, 0, std::numeric_limits<std::uint64_t>::max(), "Random seed");
    command.add("--depth", depth, 1, 9, "How deep");
    command.add("--path", path, "Where");
    command.add("--mode", mode, {{"slow", 1}, {"fast", 2}}, "How");
    command.add("--dry", dry, "Whether");
    command.add(
        "--items", "Several", [this](auto const&, auto const& text) { items.push_back(text); }, app::Takes::list);
    command.add_config();
    arguments.insert(arguments.begin(), "program");
    bool const run = command.parse(static_cast<int>(arguments.size()), arguments.data());
    help = command.help();
    values = command.values();
    settings = command.settings();
    CHECK(command.text_flags() == std::vector<std::string>{"--path", "--config"});
    CHECK(command.values(1).size() == values.size() - 1);
    given = command.arguments(static_cast<int>(arguments.size()), arguments.data());
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

/// Parses a file with this text, together with command-line arguments.
struct Configured {
  lockstep_test::TemporaryFolder folder;
  std::string path = folder / "run.yaml";
  Flags flags;
  explicit Configured(std::string const& text, std::vector<char const*> arguments = {}) {
    lockstep_test::write_file(path, text);
    arguments.insert(arguments.end(), {"--config", path.c_str()});
    CHECK(flags.parse(arguments));
  }
};
/// Returns the error message about a file, after its path.
std::string refused_file(std::string const& text) {
  lockstep_test::TemporaryFolder const folder;
  auto const path = folder / "run.yaml";
  lockstep_test::write_file(path, text);
  auto const message = Flags().refused({"--config", path.c_str()});
  return message.starts_with(path) ? message.substr(path.size()) : "without the path: " + message;
}

bool contains(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("flags write to their variables, and missing flags keep their defaults") {
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

TEST_CASE("values of number and word flags can be queried, however they were given") {
  using Values = std::vector<std::pair<std::string, std::string>>;
  Flags flags;
  CHECK(flags.parse({"--breadth=32", "--rate", "0.250", "--path", "a b", "--items", "1", "--dry"}));
  Values const expected{{"--width", "32"},        {"--rate", "0.25"}, {"--seed", "7"},
                        {"--depth", "not given"}, {"--mode", "slow"}, {"--dry", "true"}};
  CHECK(flags.values == expected);
  Values const all{{"--width", "32"}, {"--rate", "0.25"}, {"--seed", "7"},
                   {"--path", "a b"}, {"--mode", "slow"}, {"--dry", "true"}};
  CHECK(flags.settings == all);
  Configured configured("width: 32\nrate: 0.25\ndepth: 3\nmode: fast\n");
  Values const of_file{{"--width", "32"}, {"--rate", "0.25"}, {"--seed", "7"},
                       {"--depth", "3"},  {"--mode", "fast"}, {"--dry", "false"}};
  CHECK(configured.flags.values == of_file);
}

TEST_CASE("flags that are not given take the values of a saved run, and others keep theirs") {
  int width = 16, known = 3;
  std::optional<int> depth;
  std::vector<Index> channels;
  std::string path;
  bool dry = false;
  app::Command command;
  command.add("--known", known, 1, 9, "Common to all programs");
  command.add("--width", width, 1, 64, "How wide");
  command.add("--depth", depth, 1, 9, "How deep");
  command.add("--channels", channels, 1, 64, "Of each stage");
  command.add("--path", path, "Where");
  command.add("--dry", dry, "Whether");
  std::vector<char const*> const arguments{"program", "--width", "8", "--path", "a"};
  REQUIRE(command.parse(static_cast<int>(arguments.size()), arguments.data()));
  CHECK(command.lines(1) == "--width=8\n--dry=false\n");

  using Lines = std::vector<std::string>;
  CHECK(command.adopt("--known=5\n--width=32\n--depth=4\n--channels=4,8\n--dry=true\n--unknown=1\nwidth\n", 1) ==
        Lines{"--depth=4", "--channels=4,8", "--dry=true"});
  CHECK(known == 3);
  CHECK(width == 8);
  CHECK(depth == 4);
  CHECK(channels == std::vector<Index>{4, 8});
  CHECK(dry);
  CHECK(command.adopt(command.lines(1), 1).empty());
  CHECK(command.lines(1) == "--width=8\n--depth=4\n--channels=4,8\n--dry=true\n");
  CHECK_THROWS_WITH_AS(command.adopt("--depth=10\n", 1),
                       doctest::Contains("--depth 10: must be a whole number from 1 to 9"), ConfigError);
}

TEST_CASE("--help lists each flag's values, and parse returns false") {
  Flags flags;
  CHECK_FALSE(flags.parse({"-h"}));
  auto const brief = std::exchange(flags.help, "");
  CHECK_FALSE(flags.parse({"--help"}));
  CHECK(flags.help == brief);
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
  CHECK(contains(flags.refused({"--width"}), "the value is missing: write --width VALUE"));
  CHECK(contains(flags.refused({"--path", "--width", "3"}),
                 "--path: a flag takes one value and is given once; the value"));
  CHECK(contains(flags.refused({"--width=3", "--rate=1", "--width", "4"}),
                 "--width: a flag takes one value and is given once; leave out all but one"));
  CHECK(contains(flags.refused({"--width", "3", "--width", "4"}), "--width: a flag takes one value and is given once"));
  CHECK(contains(flags.refused({"--width", "3", "--breadth", "4"}), "once"));
  CHECK_FALSE(contains(flags.refused({"--width", "3", "--breadth", "4"}), "missing"));
  CHECK(contains(flags.refused({"--dry=maybe"}), "--dry = maybe: the flag takes no value"));
  CHECK(contains(flags.refused({"--dry", "true"}),
                 "unexpected argument \"true\": flags begin with --, and each takes "
                 "one value, or none; a switch takes true or false after =, as --dry-run=true"));
  CHECK(contains(flags.refused({"--rate", "0,5"}), "must be a number from 0 to 1; write a decimal point, not a comma"));
  CHECK_FALSE(contains(flags.refused({"--width", "3,5"}), "comma"));
}

TEST_CASE("a configuration file uses the flags' names, with or without sections, as YAML or JSON") {
  for (char const* text :
       {"# a comment\nwidth: 32\nrate: 2.5e-1\npath: 'a b'\nmode: fast\nitems: [x, 3]\ndry: true\ndepth: ~\n",
        "---\nmodel:\n  breadth: 32\n  rate: 0.25\npath: {path: a b, mode: fast}\nempty:\nmore:\n  items:\n    - x\n"
        "    - 3\n  dry: true\n...\n",
        "{\"model\": {\"width\": 32, \"rate\":0.25},\n\t\"path\": \"a\\u0020b\", \"mode\": \"fast\",\n"
        "\t\"items\": [\"x\", 3], \"dry\": true, \"depth\": null}"}) {
    CAPTURE(text);
    Configured const configured(text);
    auto const& flags = configured.flags;
    CHECK(flags.width == 32);
    CHECK(flags.rate == 0.25);
    CHECK(flags.path == "a b");
    CHECK(flags.mode == 2);
    CHECK(flags.items == std::vector<std::string>{"x,3"});
    CHECK(flags.dry);
    CHECK_FALSE(flags.depth.has_value());
    CHECK(flags.seed == 7);
  }
  for (char const* text : {"", "# nothing\n", "---\n", "{}", "~\n"}) CHECK(Configured(text).flags.width == 16);
}

TEST_CASE("the command line overrides the file, and settings can be passed on without the file") {
  using Words = std::vector<std::string>;
  Configured const configured("rate: 0.25\nwidth: 32\nseed: 9\ndry: false\n", {"--breadth", "8", "--dry"});
  CHECK(configured.flags.width == 8);
  CHECK(configured.flags.rate == 0.25);
  CHECK(configured.flags.seed == 9);
  CHECK(configured.flags.dry);
  CHECK(configured.flags.given == Words{"program", "--breadth", "8", "--dry", "--rate=0.25", "--seed=9"});
  Flags flags;
  CHECK(flags.parse({"--mode", "fast"}));
  CHECK(flags.given == Words{"program", "--mode", "fast"});
}

TEST_CASE("a file's error is reported with line, value and rule") {
  CHECK(refused_file("rate: 0.5\nwidth: 65\n") == ":2: --width 65: must be a whole number from 1 to 64");
  CHECK(refused_file("model:\n  rate: true\n") == ":2: --rate true: must be a number from 0 to 1");
  CHECK(contains(refused_file("mode: fats\n"), ":1: --mode fats: must be one of slow, fast; the nearest is fast"));
  CHECK(refused_file("dry: 1\n") == ":1: --dry 1: must be true or false");
  CHECK(contains(refused_file("path: ''\n"), ":1: --path ''"));
  CHECK(contains(refused_file("\nwidht: 3\n"), ":2: unknown name widht; the nearest is width"));
  CHECK(contains(refused_file("confg: 3\n"), ":1: unknown name confg; the nearest is "));
  CHECK(contains(refused_file("config: other.yaml\n"), ":1: unknown name config"));
  CHECK(refused_file("width: 3\nmodel:\n  breadth: 4\n") == ":3: breadth is given by line 1 too; leave out one");
  CHECK(refused_file("width: [3, 4]\n") == ":1: width [3,4]: takes one value, not a list");
  CHECK(refused_file("items: [a, [b]]\n") == ":1: items: a list holds single values");
  CHECK(refused_file("a:\n  b:\n    width: 3\n") == ":2: b: a section within a section; use one level");
  CHECK(contains(refused_file("rate: &r 0.5\nwidth: *r\n"), ":2: width: references"));
  CHECK(contains(refused_file("- width\n"), ":1: must be a name with a value"));
  CHECK(contains(refused_file("width\n"), ":1: must be a name with a value"));
  CHECK(contains(refused_file("width: 3\n---\nwidth: 4\n"), ":2: begins a second document"));
  CHECK(contains(refused_file("width: 3\n  rate: 0.5\n"), ":2: is not YAML or JSON: "));
  CHECK(contains(refused_file("{\"width\": 3,\n \"rate\": \n"), ": is not YAML or JSON: "));
  CHECK(contains(refused_file("path: \"a\\0b\"\n"), ":1: holds a zero byte"));
  CHECK(contains(refused_file("path: \xff\n"), ": is not YAML or JSON: "));
  CHECK(contains(Flags().refused({"--config", "/no/such/file"}), "--config /no/such/file: cannot be opened: No such"));
  CHECK(contains(Flags().refused({"--config", "/"}), "/: is not YAML or JSON: "));
}

TEST_CASE("a configuration file is a regular file or the standard input, and has at most a mebibyte") {
  lockstep_test::TemporaryFolder const folder;
  auto const pipe = folder / "pipe", large = folder / "large.yaml";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(contains(Flags().refused({"--config", pipe.c_str()}), "is not a regular file, and its writer may never come"));
  lockstep_test::write_file(large, std::string(1'048'577, '#'));
  CHECK(contains(Flags().refused({"--config", large.c_str()}), "has more than 1048576 bytes"));
  CHECK(contains(Flags().refused({"--config", "/dev/zero"}), "has more than 1048576 bytes"));

  int const kept = ::dup(STDIN_FILENO);
  auto const with_input = [&](std::string const& text, std::size_t times, auto const& use) {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    REQUIRE(::dup2(ends[0], STDIN_FILENO) == STDIN_FILENO);
    ::close(ends[0]);
    std::thread writer([&] {
      for (std::size_t i = 0; i < times; ++i)
        if (::write(ends[1], text.data(), text.size()) < 0) break;
      ::close(ends[1]);
    });
    use();
    ::dup2(kept, STDIN_FILENO);  // the writer of more than was read gets an error
    writer.join();
  };
  auto* const before = ::signal(SIGPIPE, SIG_IGN);
  for (char const* name : {"-", "/dev/stdin"})
    with_input("width: 32\n", 1, [&] {
      Flags flags;
      CHECK(flags.parse({"--config", name}));
      CHECK(flags.width == 32);
    });
  with_input("- - - - - - -\n", 1'000'000, [] {
    CHECK(contains(Flags().refused({"--config", "-"}), "--config -: has more than 1048576 bytes"));
  });
  ::signal(SIGPIPE, before);
  ::close(kept);
}

TEST_CASE("a flag takes several numbers, or several words from a list") {
  enum class Change { flip, shift };
  std::vector<Index> widths;
  std::vector<Change> changes{Change::shift};
  std::vector<std::pair<std::string, std::string>> settings;
  std::string help;
  auto const parse = [&](std::vector<char const*> arguments) {
    app::Command command;
    command.add("--widths", widths, 1, 64, "Widths");
    command.add("--changes", changes, {{"flip", Change::flip}, {"shift", Change::shift}}, "Changes");
    arguments.insert(arguments.begin(), "program");
    CHECK(command.parse(static_cast<int>(arguments.size()), arguments.data()));
    settings = command.settings();
    help = command.help();
  };
  parse({});
  CHECK(widths.empty());
  CHECK(changes == std::vector{Change::shift});
  CHECK(settings == std::vector<std::pair<std::string, std::string>>{{"--changes", "shift"}});
  CHECK(contains(help, "none, or several of flip, shift; default shift"));
  parse({"--widths", "8,16,64", "--changes", "shift,flip"});
  CHECK(widths == std::vector<Index>{8, 16, 64});
  CHECK(changes == std::vector{Change::shift, Change::flip});
  CHECK(settings ==
        std::vector<std::pair<std::string, std::string>>{{"--widths", "8,16,64"}, {"--changes", "flip,shift"}});
  parse({"--changes", "none"});
  CHECK(changes.empty());
  CHECK_THROWS_WITH_AS(parse({"--widths", "8,65"}), doctest::Contains("from 1 to 64"), ConfigError);
  for (auto const* wrong : {"flap", "flip,flap", "flip,none"})
    CHECK_THROWS_WITH_AS(parse({"--changes", wrong}),
                         doctest::Contains("must be one of none, flip, shift; the nearest"), ConfigError);
}
