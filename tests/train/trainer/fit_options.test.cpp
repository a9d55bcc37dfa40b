// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/trainer/fit_options.hpp>

#include <doctest/doctest.h>

#include <cmath>

#include <lockstep/optim/adamw.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/parallel/policy/single_device.hpp>
#include <lockstep/train/trainer/trainer.hpp>

#include "train/line.hpp"

using namespace lockstep;

namespace {
optim::SGD sgd() { return {.learning_rate = 0.2}; }
}  // namespace

TEST_CASE("invalid options are refused before any training") {
  auto loader = line::loader(8, 4);
  Trainer trainer{line::Model{}, sgd(), parallel::SingleDevice{.threads = 1}};
  auto const refuses = [&](FitOptions const& options, auto sentence) {
    CHECK_THROWS_WITH_AS(trainer.fit(loader, options), sentence, ConfigError);
  };
  refuses({.epochs = -1}, "fit: epochs is -1; it must be at least 0");
  refuses({.accumulation = 0}, "fit: accumulation is 0; it must be at least 1");
  refuses({.clip_norm = -1}, "fit: clip_norm is -1; it must be at least 0, and 0 does not clip");
  refuses({.schedule = {.warmup_steps = -5}}, "fit: schedule.warmup_steps is -5; it must be at least 0");
  refuses({.schedule = {.min_factor = 1.5}}, "fit: schedule.min_factor is 1.5; it must be at least 0 and at most 1");
  refuses({.schedule = {.min_factor = 0.5}}, doctest::Contains("only cosine and linear end there"));
  refuses({.schedule = {.kind = optim::Schedule::Kind::linear,
                        .min_factor = 0.5,
                        .rule = [](Index, Index) { return 1.0; }}},
          doctest::Contains("without a rule"));
  refuses({.schedule = {.warmup_steps = 5, .total_steps = 4}},
          "fit: schedule.warmup_steps is 5; it must be at most schedule.total_steps, which is 4 and includes them");
  refuses({.epochs = 3, .schedule = {.warmup_steps = 7}},
          "fit: schedule.warmup_steps is 7, and the fit has 6 steps, so that the learning rate would never be reached; "
          "warm up for fewer, or, for a part of a longer training, set schedule.total_steps to the steps of the whole "
          "training");
  refuses({.epochs = 9, .max_steps = 6, .schedule = {.warmup_steps = 7}},
          doctest::Contains("is 7, and the fit has 6 steps"));
  refuses({.checkpoints = {.every = -2}}, "fit: checkpoints.every is -2; it must be at least 0");
  refuses({.checkpoints = {.every = 5}},
          "fit: checkpoints.every is 5 and checkpoints.folder is empty, so that nothing would be saved; name a folder");
  refuses({.checkpoints = {.keep = 2}},
          "fit: checkpoints.keep is 2 and checkpoints.folder is empty, so that nothing would be saved; name a folder");
  CHECK(trainer.values()[0] == 0);
  auto const refuses_optimizer = [&](auto optimizer, char const* sentence) {
    Trainer wrong{line::Model{}, optimizer, parallel::SingleDevice{.threads = 1}};
    CHECK_THROWS_WITH_AS(wrong.fit(loader), sentence, ConfigError);
  };
  refuses_optimizer(optim::SGD{.learning_rate = -0.1},
                    "SGD: learning_rate is -0.1; it must be a finite number of at least 0");
  refuses_optimizer(optim::SGD{.learning_rate = INFINITY},
                    "SGD: learning_rate is inf; it must be a finite number of at least 0");
  refuses_optimizer(optim::AdamW{.beta1 = 1.5}, "AdamW: beta1 is 1.5; it must be at least 0 and below 1");
  refuses_optimizer(optim::AdamW{.weight_decay = std::nan("")},
                    "AdamW: weight_decay is nan; it must be a finite number of at least 0");
}
