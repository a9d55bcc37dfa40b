// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <lockstep/app/trainer_program.hpp>
#include <lockstep/core/error.hpp>

#include "temporary_folder.hpp"

using namespace lockstep;
using namespace lockstep_test;
using app::TrainerProgram;
using Words = std::vector<std::string>;

TEST_CASE("a trainer's flags are found in any spelling, and reserved ones are refused") {
  TrainerProgram const trainer({"/bin/true", "--batch_size=3", "--max-steps", "9", "-v"}, "caller", {"--nproc"});
  CHECK(trainer.name() == "true");
  CHECK(trainer.has("--batch-size"));
  CHECK(trainer.has("--max-steps"));
  CHECK_FALSE(trainer.has("--batch"));
  CHECK(trainer.without("--max-steps") == Words{"/bin/true", "--batch_size=3", "-v"});
  CHECK(trainer.without("--batch-size") == Words{"/bin/true", "--max-steps", "9", "-v"});
  CHECK_THROWS_WITH_AS(TrainerProgram({"/bin/true", "--nproc=2"}, "caller", {"--nproc"}),
                       doctest::Contains("--nproc=2: caller sets this flag for each run"), ConfigError);
  CHECK_THROWS_WITH_AS(TrainerProgram({"/bin/no_such"}, "caller", {}), doctest::Contains("cannot be started"),
                       ConfigError);
  CHECK_THROWS_AS(TrainerProgram({"no_such_trainer"}, "caller", {}), ConfigError);
}

TEST_CASE("a run's output is kept in its log, and its failure has the last error message") {
  TemporaryFolder const folder;
  auto const end = app::run_trainer({"/bin/sh", "-c", "echo out; echo first >&2; echo 'no memory' >&2; exit 3"},
                                    "[1/1]", folder / "log");
  CHECK(end.exit_code == 3);
  CHECK(app::failure_of(end) == "no memory");
  CHECK(read_file(folder / "log").find("out\n") != std::string::npos);
  CHECK(app::failure_of({.exit_code = 7, .last_error = {}}) == "ended with exit code 7");
}
