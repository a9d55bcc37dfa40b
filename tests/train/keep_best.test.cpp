// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/keep_best.hpp>

#include <doctest/doctest.h>

#include <lockstep/optim/sgd.hpp>
#include <lockstep/parallel/single_device.hpp>
#include <lockstep/train/trainer.hpp>

#include "../temporary_folder.hpp"
#include "line.hpp"

using namespace lockstep;

TEST_CASE("the file holds the parameters of the best evaluation, whatever training did afterwards") {
  lockstep_test::TemporaryFolder const folder;
  auto const path = folder / "best.safetensors";
  auto loader = line::loader(8, 4), again = line::loader(8, 4);
  // Steps that overshoot more and more: the first evaluation is the best.
  Trainer trainer{line::Model{}, optim::SGD{.learning_rate = 3}, parallel::SingleDevice{.threads = 1}};
  struct First : train::Observer {
    Trainer<line::Model, optim::SGD, parallel::SingleDevice> const& trainer;
    std::vector<float> slopes;
    explicit First(decltype(trainer) t) : trainer(t) {}
    void evaluation(train::EvaluationReport const&) override { slopes.push_back(trainer.values()[0]); }
  } heard(trainer);
  train::KeepBest best(trainer, path, {{"unit", "metres"}});
  auto const record = trainer.fit(loader, train::Evaluation{again}, {.epochs = 3, .observers = {&heard, &best}});
  REQUIRE(record.evaluations.size() == 3);
  CHECK(record.evaluations[0].best);
  CHECK_FALSE(record.evaluations[2].best);
  REQUIRE(heard.slopes[0] != heard.slopes[2]);
  CHECK(train::load_text(path, "unit") == "metres");
  Trainer later{line::Model{}, optim::SGD{}, parallel::SingleDevice{.threads = 1}};
  later.load(path);
  CHECK(later.values()[0] == heard.slopes[0]);
}
