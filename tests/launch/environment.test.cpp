// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <lockstep/launch/environment.hpp>

#include <map>
#include <string>

using namespace lockstep::launch;
using lockstep::ConfigError;

namespace {

using Environment = std::map<std::string, std::string>;

auto detect_in(Environment const& environment) {
  return detect([&](char const* name) -> char const* {
    auto const found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

Environment const complete{{"LOCKSTEP_RANK", "1"},
                           {"LOCKSTEP_WORLD_SIZE", "4"},
                           {"LOCKSTEP_SUPERVISOR", "4242"},
                           {"LOCKSTEP_MEMORY_FD", "3"},
                           {"LOCKSTEP_JOB", "18446744073709551615"}};

Environment with(Environment environment, std::string const& name, std::string const& value) {
  environment[name] = value;
  return environment;
}

}  // namespace

TEST_CASE("an ordinary environment is no rank's") {
  CHECK_FALSE(detect_in({}).has_value());
  CHECK_FALSE(detect_in({{"HOME", "/root"}, {"LOCKSTEP_DEBUG", "info"}, {"WORLD_SIZE", "4"}}).has_value());
}

TEST_CASE("a started rank finds its place, and what it is told is what was written") {
  auto const place = detect_in(complete);
  REQUIRE(place.has_value());
  CHECK(place->rank == 1);
  CHECK(place->size == 4);
  CHECK(place->supervisor == 4242);
  CHECK(place->memory == 3);
  CHECK(place->job == UINT64_MAX);
  Environment written;
  for (auto const& text : place->assignments())
    written[text.substr(0, text.find('='))] = text.substr(text.find('=') + 1);
  CHECK(written == complete);
}

TEST_CASE("a part of the variables is refused, with those that are missing") {
  for (auto const& [name, value] : complete) {
    auto part = complete;
    part.erase(name);
    CHECK_THROWS_WITH_AS(detect_in(part), doctest::Contains(("but not " + name + ";").c_str()), ConfigError);
    CHECK_THROWS_AS(detect_in({{name, value}}), ConfigError);
  }
}

TEST_CASE("values that cannot be are refused by name") {
  for (auto const& [name, value] : std::multimap<std::string, std::string>{{"LOCKSTEP_RANK", "4"},
                                                                           {"LOCKSTEP_RANK", "-1"},
                                                                           {"LOCKSTEP_WORLD_SIZE", "0"},
                                                                           {"LOCKSTEP_WORLD_SIZE", "257"},
                                                                           {"LOCKSTEP_WORLD_SIZE", "4 "},
                                                                           {"LOCKSTEP_SUPERVISOR", ""},
                                                                           {"LOCKSTEP_MEMORY_FD", "three"},
                                                                           {"LOCKSTEP_JOB", "18446744073709551616"}}) {
    CHECK_THROWS_WITH_AS(detect_in(with(complete, name, value)), doctest::Contains((name + "=" + value).c_str()),
                         ConfigError);
  }
}

TEST_CASE("ranks of other launchers are refused, never taken for lone programs") {
  struct Case {
    char const* launcher;
    Environment environment;
  };
  for (auto const& [launcher, environment] :
       {Case{"torchrun", {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "localhost"}}},
        Case{"mpirun", {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}}},
        Case{"mpirun", {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}},
        Case{"srun", {{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "1"}}}}) {
    CHECK_THROWS_WITH_AS(detect_in(environment), doctest::Contains((std::string(launcher) + " as one of 2").c_str()),
                         ConfigError);
    auto own = complete;
    own.insert(environment.begin(), environment.end());
    CHECK(detect_in(own).has_value());  // a rank of ours inside someone else's step
  }
  CHECK_FALSE(detect_in({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}).has_value());
  // Inside salloc without srun these are set, and there is one process.
  CHECK_FALSE(detect_in({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}).has_value());
}
