// SPDX-License-Identifier: Apache-2.0
#include <lockstep/app/options.hpp>

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("the effective batch is batch x ranks x devices x accumulation") {
  app::Options options;
  options.batch_size = 8;
  options.grad_accum_steps = 4;
  CHECK(options.effective_batch_size() == 32);
  options.ranks = 4;
  CHECK(options.effective_batch_size() == 128);
  options.ranks = 1;
  options.devices = 3;
  CHECK(options.shards() == 3);
  CHECK(options.effective_batch_size() == 96);
}

TEST_CASE("a sampler's global batch is a micro-step's, for any number of shards") {
  app::Options options;
  options.batch_size = 8;
  options.grad_accum_steps = 4;
  options.ranks = 2;
  CHECK(options.global_batch() == 16);
  options.reproducible = 4;
  CHECK(options.shard_size() == 4);
  CHECK(options.global_batch() == 16);
  options.ranks = 1;
  options.devices = 2;
  CHECK(options.global_batch() == 16);
}

TEST_CASE("the learning rate scales with effective batch / base, and by default the base is one rank's batch") {
  app::Options options;
  options.learning_rate = 0.5;
  options.batch_size = 16;
  options.ranks = 4;
  CHECK(options.scaled_learning_rate() == 0.5);
  options.lr_scaling = optim::LearningRateScaling::linear;
  CHECK(options.scaled_learning_rate() == 2.0);
  options.lr_scaling = optim::LearningRateScaling::sqrt;
  CHECK(options.scaled_learning_rate() == 1.0);
  options.base_batch_size = 64;
  CHECK(options.scaled_learning_rate() == 0.5);
}
