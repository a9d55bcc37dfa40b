// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/predictor.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <utility>
#include <vector>
#include <lockstep/data/collated.hpp>
#include <lockstep/data/sequential_sampler.hpp>
#include <lockstep/nn/cross_entropy.hpp>
#include <lockstep/nn/dropout.hpp>
#include <lockstep/nn/half_precision.hpp>
#include <lockstep/nn/linear.hpp>
#include <lockstep/optim/adamw.hpp>
#include <lockstep/parallel/single_device.hpp>
#include <lockstep/train/trainer.hpp>

#include "../temporary_folder.hpp"
#include "line.hpp"

using namespace lockstep;
using line::Point;

namespace {

/// Dropout, so that prediction in training mode would show; a buffer, so that one must be loaded.
class Model {
 public:
  explicit Model(Index hidden = 4) : first_(1, hidden), second_(hidden, 2) {}
  void visit(auto&& each) {
    each("first", first_);
    each("second", second_);
    each("shift", shift_);
  }
  template <class Context>
  auto predict(Context& context, auto const& batch) const {
    auto const x = batch[&Point::x].values;
    auto const hidden = first_.forward(context, context.input(x.reshape(Extents<2>{x.extent[0], 1})));
    auto const logits = second_.forward(context, dropout_.forward(context, hidden, batch.positions()));
    for (auto& logit : logits.value.span())
      logit = static_cast<typename Context::Scalar>(logit + context.template value<1>(shift_)(0));
    return logits;
  }
  template <class Context>
  nn::Loss<typename Context::Space> loss(Context& context, auto const& logits, auto const& batch) const {
    return nn::cross_entropy(context, logits, batch[&Point::label]);
  }

 private:
  nn::Linear first_, second_;
  nn::Dropout dropout_{0.5};
  nn::Buffer shift_{{1}, nn::Initializer::constant(0.25)};
};

/// Keeps what the trainer's own evaluation predicts.
struct Keep {
  std::vector<float>* kept;
  void add(auto const& prediction, auto const&) {
    kept->assign(prediction.value.data, prediction.value.data + prediction.value.size());
  }
  std::span<double> totals() { return {}; }
  double value() const { return 0; }
  char const* name() const { return "keep"; }
};

}  // namespace

TEST_CASE("a predictor gives what the trainer's evaluation sees, from a file or from arenas at hand") {
  data::DataLoader loader{
      data::InMemoryDataset{line::points(9)}, data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 9}};
  Trainer trainer{Model{}, optim::AdamW{.learning_rate = 0.1}, parallel::SingleDevice{.threads = 1}};
  trainer.fit(loader);
  std::vector<float> expected;
  static_cast<void>(trainer.evaluate(train::Evaluation{loader, Keep{&expected}}));
  REQUIRE(expected.size() == 18);

  lockstep_test::TemporaryFolder const folder;
  train::save_parameters(folder / "line.safetensors", trainer.layout(), trainer.values(), {{"about", "a line"}},
                         trainer.buffers());
  train::Predictor loaded{Model{}, folder / "line.safetensors"};
  train::Predictor copied{Model{}, trainer.values(), trainer.buffers(), 2};
  CHECK(loaded.metadata() == train::Metadata{{"about", "a line"}});
  CHECK(copied.metadata().empty());
  data::Collated const batch{data::PadCollate{}, line::points(9)};
  for (auto* predictor : {&loaded, &copied})
    for (int again = 0; again < 2; ++again) {
      auto const logits = predictor->predict(batch.batch());
      CHECK(std::vector<float>(logits.value.data, logits.value.data + logits.value.size()) == expected);
    }
  train::Predictor low{nn::InBfloat16{Model{}}, folder / "line.safetensors"};
  auto const rounded = low.predict(batch.batch());
  // Three roundings to 8 bits on the way, of numbers of at most 4.
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK(std::abs(static_cast<float>(rounded.value.data[i]) - expected[i]) <= 3 * 4 * 0x1p-8f);

  auto moved = std::move(loaded);
  CHECK(moved.predict(batch.batch()).value(3, 1) == expected[7]);
}

TEST_CASE("parameters of another model are refused") {
  lockstep_test::TemporaryFolder const folder;
  Model other(5);
  auto const layout = nn::ParameterLayout::of(other);
  std::vector<float> const values(static_cast<std::size_t>(layout.size())),
      buffers(static_cast<std::size_t>(layout.buffer_size()));
  train::save_parameters(folder / "other.safetensors", layout, values, {}, buffers);
  CHECK_THROWS_WITH_AS((train::Predictor{Model{}, folder / "other.safetensors"}), doctest::Contains("first.weight"),
                       DataError);
  Model const large(500);
  CHECK_THROWS_WITH_AS((train::Predictor{large, std::span<float const>(values)}),
                       doctest::Contains("give those of the same model"), ShapeError);
  CHECK_THROWS_AS((train::Predictor{Model{}, folder / "none.safetensors"}), DataError);
}
