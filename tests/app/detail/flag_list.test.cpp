// SPDX-License-Identifier: Apache-2.0
#include <lockstep/app/detail/flag_list.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <lockstep/app/command.hpp>
#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/core/json.hpp>
#include <lockstep/launch/run/run.hpp>
#include <lockstep/parallel/agreement.hpp>
#include <lockstep/train/logs/run_json.hpp>
#include <lockstep/train/logs/run_record.hpp>

#include "temporary_folder.hpp"

using namespace lockstep;
using namespace lockstep_test;

namespace {

enum class Order { forward, backward };
constexpr OptionWord orders[] = {{"forward", Order::forward}, {"backward", Order::backward}};

/// Options of some floor.
struct SweepOptions {
  Index rounds = 2;  // is replaced by one of the trainer's options
  double momentum = 0.5;
  bool quiet = false;
  Order order = Order::forward;
};
OptionList describe(SweepOptions& sweep) {
  return {
      "sweep",
      {{.name = "rounds",
        .variable = sweep.rounds,
        .range = {0},
        .agreement = "rounds of a sweep",
        .flag = {.names = "--sweeps", .heading = "Sweep", .help = "Rounds; default {}", .range = {{1, 9}}}},
       {.name = "momentum",
        .variable = sweep.momentum,
        .range = {0, 1, true},
        .agreement = "momentum of a sweep",
        .recorded = Recorded::if_changed,
        .flag = {.names = "--sweep-momentum",
                 .heading = "Sweep",
                 .help = "Momentum",
                 .synonyms = "sweep-beta sweep-inertia"}},
       {.name = "order",
        .variable = {sweep.order, orders},
        .agreement = "order of a sweep",
        .flag = {.names = "--sweep-order", .heading = "Sweep", .help = "Order"}},
       {.name = "quiet", .variable = sweep.quiet, .flag = {.names = "--quiet", .heading = "Sweep", .help = "Quiet"}},
       {.name = "no flag", .variable = sweep.quiet}}};
}

/// The options of a trainer: those of the floor, and an older member that replaces one of them.
struct TrainerOptions {
  SweepOptions sweep;
  int sweeps = 3;

  app::detail::FlagList add_to(app::Command* command) {
    app::detail::FlagList flags(command);
    auto const list = describe(sweep);
    flags.group("Other");
    flags.add(list, "rounds", sweeps, std::to_string(sweeps));
    flags.add_rest(list);
    return flags;
  }
  /// Returns the floor's options as a trainer passes them on.
  SweepOptions chosen() {
    auto out = sweep;
    describe(out).assign(add_to(nullptr).stand_ins("sweep"));
    return out;
  }
};

struct Parsed {
  TrainerOptions options;
  std::string help;
  std::vector<std::pair<std::string, std::string>> settings;

  explicit Parsed(std::vector<std::string> words, std::string const& file = "") {
    TemporaryFolder const folder;
    if (!file.empty()) {
      write_file(folder / "run.yaml", file);
      words.insert(words.end(), {"--config", folder / "run.yaml"});
    }
    app::Command command;
    options.add_to(&command);
    command.add_config();
    command.add_synonyms();
    std::vector<char const*> arguments{"program"};
    for (auto const& word : words) arguments.push_back(word.c_str());
    static_cast<void>(command.parse(static_cast<int>(arguments.size()), arguments.data()));
    help = command.help();
    settings = command.settings();
  }
};

std::string refused(std::vector<std::string> words, std::string const& file = "") {
  try {
    Parsed(std::move(words), file);
  } catch (ConfigError const& error) {
    std::string const says = error.what();
    return says.substr(std::min(says.find("run.yaml"), says.find("--")));
  }
  return "";
}

}  // namespace

TEST_CASE("flags, with help and synonyms, follow from descriptors") {
  Parsed none({});
  CHECK(none.options.chosen().rounds == 3);
  CHECK(none.options.chosen().momentum == 0.5);
  for (auto const* line :
       {"Rounds; default 3 (a whole number from 1 to 9; default 3)", "Momentum (a number from 0 to 1; default 0.5)",
        "Order (forward, backward; default forward)", "\nSweep:\n"}) {
    CAPTURE(line);
    CHECK(none.help.find(line) != std::string::npos);
  }
  auto given = Parsed({"--sweeps", "4", "--sweep_momentum=0.25", "--sweep-order", "backward", "--quiet"}).options;
  auto const chosen = given.chosen();
  CHECK(chosen.rounds == 4);
  CHECK(chosen.momentum == 0.25);
  CHECK(chosen.order == Order::backward);
  CHECK(chosen.quiet);
  CHECK(Parsed({"--sweep-inertia", "0.125"}).options.sweep.momentum == 0.125);
  CHECK(refused({"--sweeps", "0"}) == "--sweeps 0: must be a whole number from 1 to 9");
  CHECK(refused({"--sweep-order", "back"}) ==
        "--sweep-order back: must be one of forward, backward; the nearest is "
        "backward");
  CHECK(refused({"--sweep-momentum", "1", "--sweep_beta", "0"}).find("another name of --sweep-momentum") !=
        std::string::npos);
}

TEST_CASE("keys of configuration files, with synonyms, follow from descriptors") {
  auto options = Parsed({}, "training:\n  sweeps: 5\n  sweep_beta: 0.75\nquiet: true\n").options;
  CHECK(options.chosen().rounds == 5);
  CHECK(options.sweep.momentum == 0.75);
  CHECK(options.sweep.quiet);
  CHECK(refused({}, "\nsweep_inertia: 2\n") == "run.yaml:2: --sweep-momentum 2: must be a number from 0 to 1");
}

TEST_CASE("checks, the comparison between ranks and run.json follow from descriptors") {
  SweepOptions wrong{.momentum = 1};
  CHECK_THROWS_WITH_AS(describe(wrong).check_ranges(), "sweep: momentum is 1; it must be at least 0 and below 1",
                       ConfigError);

  auto const differs = [](auto change, std::string const& says) {
    launch::Options ranks;
    ranks.threads = 2;
    auto const run = [&] {
      launch::run(ranks, [&](launch::World& world) {
        SweepOptions mine;
        if (world.rank == 1) change(mine);
        parallel::Agreement agreement;
        agreement.add(describe(mine));
        auto communicator = comm::connect(world);
        agreement.check(communicator);
        return 0;
      });
    };
    CHECK_THROWS_WITH_AS(run(), doctest::Contains(says.c_str()), CollectiveMismatch);
  };
  differs([](SweepOptions& mine) { mine.rounds = 7; },
          "rank 1 has rounds of a sweep = 7, but rank 0 has rounds of a "
          "sweep = 2");
  differs([](SweepOptions& mine) { mine.momentum = 0.25; }, "momentum of a sweep = 0.25");
  differs([](SweepOptions& mine) { mine.order = Order::backward; }, "order of a sweep = backward, but");
  launch::Options alone;
  alone.threads = 2;
  launch::run(alone, [](launch::World& world) {
    SweepOptions mine{.quiet = world.rank == 1};  // may differ
    parallel::Agreement agreement;
    agreement.add(describe(mine));
    auto communicator = comm::connect(world);
    agreement.check(communicator);
    return 0;
  });

  Parsed parsed({"--sweep-order", "backward", "--sweep-momentum", "0.25"});
  train::RunLabels labels;
  for (auto const& [name, text] : parsed.settings) labels.settings.emplace_back(name.substr(2), text);
  auto const run = json::parse(train::run_json({}, labels), "run.json");
  CHECK(run.at("settings").at("sweeps").integer() == 3);
  CHECK(run.at("settings").at("sweep-momentum").number() == 0.25);
  CHECK(run.at("settings").at("sweep-order").string() == "backward");
  CHECK_FALSE(run.at("settings").at("quiet").boolean());
  SweepOptions initial;
  CHECK(describe(parsed.options.sweep).changed(describe(initial)) ==
        std::vector<std::pair<std::string, std::string>>{{"momentum", "0.25"}});
}
