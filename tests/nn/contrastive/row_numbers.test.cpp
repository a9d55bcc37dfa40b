// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/contrastive/row_numbers.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/sequential_sampler.hpp>
#include <lockstep/nn/contrastive/dot_products.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/cross_entropy.hpp>
#include <lockstep/nn/normalization/l2_normalize.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/parallel/policy/data_parallel.hpp>
#include <lockstep/parallel/policy/single_device.hpp>
#include <lockstep/train/trainer/trainer.hpp>

#include "nn/layer_check.hpp"

using namespace layer_check;

namespace {
struct NoParameters {
  void visit(auto&&) {}
};

struct Item {
  float x, y;
};
/// Tells which y belongs to an x.
class Towers {
 public:
  void visit(auto&& each) {
    each("first", first_);
    each("second", second_);
  }
  template <class Context>
  nn::LossOf<Context> forward(Context& context, auto const& batch) const {
    lockstep::Extents<2> const column{batch.rows(), 1};
    auto const x = first_.forward(context, context.input(batch[&Item::x].values.reshape(column)));
    auto const y = second_.forward(context, context.input(batch[&Item::y].values.reshape(column)));
    auto const all = nn::all_gather(context, y);
    return nn::cross_entropy(context, nn::dot_products(context, x, all.rows), nn::row_numbers(context, all));
  }

 private:
  nn::Linear first_{1, 4}, second_{1, 4};
};

double first_loss(auto policy, Index batch_size) {
  std::vector<Item> items;
  for (int i = 0; i < 11; ++i) items.push_back({static_cast<float>(i) / 2, static_cast<float>(i * i % 7)});
  lockstep::data::DataLoader loader{lockstep::data::InMemoryDataset{items},
                                    lockstep::data::SequentialSampler{},
                                    lockstep::data::PadCollate{},
                                    {.batch_size = batch_size}};
  lockstep::Trainer trainer{Towers{}, lockstep::optim::SGD{.learning_rate = 0.1}, std::move(policy)};
  return trainer.fit(loader, {.epochs = 1}).train_loss;
}
}  // namespace

TEST_CASE("numbers begin at the given one and count the rows") {
  lockstep::ThreadPool pool(1);
  nn::Context<float, HostSpace> context{lockstep::memory::Stream<HostSpace>(pool)};
  nn::Pass(context).begin_micro_batch(nn::Mode::evaluation, 1);
  auto const vector_of = [](auto const& y) { return std::vector<std::int32_t>(y.data, y.data + y.size()); };
  CHECK(vector_of(nn::row_numbers(context, 3)) == std::vector<std::int32_t>{0, 1, 2});
  CHECK(vector_of(nn::row_numbers(context, 2, 5)) == std::vector<std::int32_t>{5, 6});
  CHECK(vector_of(nn::row_numbers(context, 0, 5)).empty());
  Index const most = std::numeric_limits<std::int32_t>::max();
  CHECK(vector_of(nn::row_numbers(context, 1, most - 1)) == std::vector<std::int32_t>{2147483646});
  CHECK_THROWS_WITH_AS(static_cast<void>(nn::row_numbers(context, 2, most - 1)),
                       "row_numbers: 2 rows from 2147483646; labels must be from 0 to 2147483647",
                       lockstep::ShapeError);
}

TEST_CASE("after all_gather they are the numbers of this replica's rows") {
  lockstep::ThreadPool pool(1);
  nn::Context<float, HostSpace> context{lockstep::memory::Stream<HostSpace>(pool)};
  nn::Pass(context).begin_micro_batch(nn::Mode::evaluation, 1);
  auto const vector_of = [](auto const& y) { return std::vector<std::int32_t>(y.data, y.data + y.size()); };
  auto const x = context.variable<2>({3, 2});
  CHECK(vector_of(nn::row_numbers(context, nn::all_gather(context, x))) == std::vector<std::int32_t>{0, 1, 2});
  nn::Gathered<nn::Context<float, HostSpace>> const second{context.variable<2>({7, 2}), 4, 3};
  CHECK(vector_of(nn::row_numbers(context, second)) == std::vector<std::int32_t>{4, 5, 6});
}

TEST_CASE("they are labels of a loss over pairs") {
  auto const pairs = [](auto& context, NoParameters const&, auto const& x) {
    auto const y = nn::l2_normalize(context, x.tokens);
    auto const logits = nn::dot_products(context, y, y);
    auto const own = nn::row_numbers(context, y.extent(0));
    CHECK(own.size() == y.extent(0));
    static_cast<void>(nn::cross_entropy(context, logits, own));
    return logits;
  };
  CHECK_FALSE(run<float>(NoParameters{}, 5, {.rows = 4}, pairs, 1).gradients.empty());
}

TEST_CASE("a loss over the pairs of all devices equals the loss of one device, also with uneven batches") {
  auto const expected = first_loss(lockstep::parallel::SingleDevice{.threads = 1}, 12);
  CHECK(expected > 0.1);
  for (int const devices : {2, 3}) {
    auto const loss = first_loss(lockstep::parallel::DataParallel{.devices = devices, .threads = 1}, 12 / devices);
    CHECK(std::abs(loss - expected) < 1e-5 * expected);
  }
}
