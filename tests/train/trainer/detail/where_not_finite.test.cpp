// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/trainer/detail/where_not_finite.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/sequential_sampler.hpp>
#include <lockstep/launch/run/run.hpp>
#include <lockstep/nn/contrastive/all_gather.hpp>
#include <lockstep/nn/contrastive/dot_products.hpp>
#include <lockstep/nn/contrastive/row_numbers.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/cross_entropy.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/parallel/policy/distributed_data_parallel.hpp>
#include <lockstep/train/trainer/trainer.hpp>

using namespace lockstep;

namespace {

enum class Negatives { all, own };

struct Item {
  float seen, unseen;
};

/// Each sample against all samples of the batch, or against those of its own rank.
template <Negatives negatives>
class Pairs {
 public:
  void visit(auto&& each) { each("map", map_); }
  template <class Context>
  nn::LossOf<Context> forward(Context& context, auto const& batch) const {
    auto const column = batch[&Item::seen].values.reshape(Extents<2>{batch.rows(), 1});
    auto const y = map_.forward(context, context.input(column));
    auto const others =
        negatives == Negatives::all ? nn::all_gather(context, y) : nn::Gathered<Context>{y, 0, y.extent(0)};
    return nn::cross_entropy(context, nn::dot_products(context, y, others.rows), nn::row_numbers(context, others));
  }

 private:
  nn::Linear map_{1, 4};
};

/// The errors of two ranks. With a sequential sampler, rank 0 takes the samples with even numbers.
template <Negatives negatives>
std::vector<std::string> errors_on(std::vector<Item> const& items) {
  std::vector<std::string> errors(2);
  launch::run({.threads = 2}, [&](launch::World& world) {
    data::DataLoader loader{
        data::InMemoryDataset{items}, data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 4}};
    Trainer trainer{Pairs<negatives>{}, optim::SGD{.learning_rate = 0.1},
                    parallel::DistributedDataParallel{comm::connect(world), 256, 1}};
    try {
      trainer.fit(loader, {.epochs = 1});
    } catch (Error const& error) {
      errors[static_cast<std::size_t>(world.rank)] = error.what();
    }
    return 0;
  });
  return errors;
}

std::vector<Item> items() { return std::vector<Item>(16, {0.5f, 1}); }

}  // namespace

TEST_CASE("a sample that makes the loss NaN on all ranks is named by the rank that has it") {
  for (std::size_t const bad : {12u, 13u}) {
    auto all = items();
    all[bad].seen = std::nanf("");
    auto const expected = "training: the loss of step 2 is nan; sample " + std::to_string(bad) +
                          " holds an infinity or a NaN in its member 0 (counted from 0)";
    for (auto const& error : errors_on<Negatives::all>(all)) CHECK(error.starts_with(expected));
  }
}

TEST_CASE("a rank whose loss is finite does not search its samples") {
  auto all = items();
  all[8].unseen = all[13].seen = std::nanf("");
  for (auto const& error : errors_on<Negatives::own>(all))
    CHECK(error.starts_with("training: the loss of step 2 is nan on rank 1 and nowhere else; sample 13 holds"));
}

TEST_CASE("without such a sample the message names none") {
  auto all = items();
  for (auto& item : all) item.seen = 1e38f;  // whose scores overflow
  for (auto const& error : errors_on<Negatives::all>(all)) {
    CHECK(error.starts_with("training: the loss of step 1 is"));
    CHECK(error.find("; lower the learning rate") != error.npos);
  }
}
