// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/loader/loader_stats.hpp>

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("the verdict names the waiting side, the reason and the remedy") {
  data::LoaderStats stats;
  CHECK(stats.verdict() == "no batch has been requested yet");
  stats.elapsed_seconds = 10;
  stats.delivered = 5;
  stats.wait_seconds = 0.1;
  CHECK(stats.verdict() == "the loader keeps up: training waits for data 1 % of the time");
  stats.wait_seconds = 0.3;
  CHECK(stats.verdict() == "training makes its own batches, 3 % of the time; give the loader a worker");
  stats.wait_seconds = 4;
  CHECK(stats.verdict() == "training makes its own batches, 40 % of the time; give the loader a worker");
  stats.workers = 2;
  stats.read_seconds = 17;
  stats.write_seconds = 2;
  stats.idle_seconds = 1;
  CHECK(stats.busy_seconds() == 19);
  CHECK(stats.verdict() ==
        "training waits for data 40 % of the time; the 2 workers are busy 95 %, most of it with reading samples; add "
        "workers, or make samples cheaper to read");
  stats.read_seconds = 2;
  stats.write_seconds = 8;
  stats.idle_seconds = 10;
  CHECK(stats.verdict() ==
        "training waits for data 40 % of the time; the 2 workers are busy 50 %, most of it with writing them into "
        "batches; raise `prefetch`: loading waits too");
  stats.workers = 1;
  CHECK(stats.verdict() ==
        "training waits for data 40 % of the time; the worker is busy 50 %, most of it with writing them into batches; "
        "raise `prefetch`: loading waits too");
}
