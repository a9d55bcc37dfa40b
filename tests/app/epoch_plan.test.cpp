// SPDX-License-Identifier: Apache-2.0
#include <lockstep/app/epoch_plan.hpp>

#include <doctest/doctest.h>

using namespace lockstep;

namespace {

app::EpochPlan plan(Index samples, int ranks, Index batch_size, int accumulation, int reproducible = 0) {
  app::Options options;
  options.ranks = ranks;
  options.batch_size = batch_size;
  options.grad_accum_steps = accumulation;
  options.reproducible = reproducible;
  return app::EpochPlan::of(options, samples);
}

}  // namespace

TEST_CASE("10,000 samples in batches of 8, accumulated 4 times, on 1 and on 4 ranks") {
  auto const one = plan(10000, 1, 8, 4), four = plan(10000, 4, 8, 4);
  CHECK(one.micro_steps == 1250);
  CHECK(one.effective_batch == 32);
  CHECK(one.optimizer_steps == 313);
  CHECK(four.micro_steps == 313);
  CHECK(four.effective_batch == 128);
  CHECK(four.optimizer_steps == 79);
}

TEST_CASE("whole and short last steps, and a fixed number of shards") {
  CHECK(plan(32, 2, 4, 2).micro_steps == 4);
  CHECK(plan(32, 2, 4, 2).optimizer_steps == 2);
  CHECK(plan(33, 2, 4, 2).micro_steps == 5);
  CHECK(plan(33, 2, 4, 2).optimizer_steps == 3);
  CHECK(plan(1, 1, 8, 4).micro_steps == 1);
  CHECK(plan(1, 1, 8, 4).optimizer_steps == 1);
  CHECK(plan(64, 2, 8, 1, 4).micro_steps == plan(64, 1, 16, 1, 4).micro_steps);
}
