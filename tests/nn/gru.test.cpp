// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include <lockstep/nn/add.hpp>
#include <lockstep/nn/concatenate_channels.hpp>
#include <lockstep/nn/cross_entropy.hpp>
#include <lockstep/nn/linear.hpp>
#include <lockstep/nn/multiply.hpp>
#include <lockstep/nn/sigmoid.hpp>
#include <lockstep/nn/subtract.hpp>
#include <lockstep/nn/tanh.hpp>

#include "kernel/values.hpp"
#include "malloc_count.hpp"
#include "nn/sequence_model.hpp"

using namespace lockstep;
using lockstep_test::Trial;

namespace {

/// A gated recurrent unit, as torch.nn.GRUCell.
class GruCell {
 public:
  GruCell(Index inputs, Index width)
      : reset_(inputs + width, width), update_(inputs + width, width), input_(inputs, width), state_(width, width) {}
  void visit(auto&& each) {
    each("reset", reset_), each("update", update_), each("input", input_), each("state", state_);
  }
  template <class Context>
  auto forward(Context& context, typename Context::template Variable<2> x,
               typename Context::template Variable<2> h) const {
    auto const both = nn::concatenate_channels(context, x, h);
    auto const reset = nn::sigmoid(context, reset_.forward(context, both));
    auto const update = nn::sigmoid(context, update_.forward(context, both));
    auto const remembered = nn::multiply(context, reset, state_.forward(context, h));
    auto const fresh = nn::tanh(context, nn::add(context, input_.forward(context, x), remembered));
    return nn::add(context, fresh, nn::multiply(context, update, nn::subtract(context, h, fresh)));
  }

 private:
  nn::Linear reset_, update_, input_, state_;
};

/// Series of two numbers each, of which the first one's sign is to be remembered.
struct Batch {
  static constexpr Index steps = 6, channels = 2;
  Index rows;
  std::vector<float> numbers = lockstep_test::values<float>(steps * rows * channels, 1);  // [steps, rows, channels]
  std::vector<std::int32_t> labels{};

  explicit Batch(Index count) : rows(count) {
    for (Index r = 0; r < rows; ++r) labels.push_back(numbers[static_cast<std::size_t>(r * channels)] > 0);
  }
  [[nodiscard]] TensorView<float const, 2, HostSpace> at(Index step) const {
    return {numbers.data() + step * rows * channels, {rows, channels}};
  }
  [[nodiscard]] TensorView<std::int32_t const, 1, HostSpace> classes() const { return {labels.data(), {rows}}; }
};

struct Model {
  static constexpr Index width = 5;
  nn::Linear first{Batch::channels, width};
  GruCell cell{Batch::channels, width};
  nn::Linear head{width, 2};
  void visit(auto&& each) { each("first", first), each("cell", cell), each("head", head); }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, Batch const& batch) const {
    auto state = nn::tanh(context, first.forward(context, context.input(batch.at(0))));
    for (Index step = 1; step < Batch::steps; ++step)
      state = cell.forward(context, context.input(batch.at(step)), state);
    return nn::cross_entropy(context, head.forward(context, state), batch.classes());
  }
};

}  // namespace

TEST_CASE("gradients of a gated recurrent unit through time") {
  for (Index rows : {1, 3}) {
    auto const result = lockstep_test::check_model(Model{}, Batch(rows));
    CAPTURE(result.where);
    CHECK(result.ok());
  }
}

TEST_CASE("it learns to remember, and allocates nothing meanwhile") {
  Batch const batch(64);
  Trial<Model, float> trial(Model{});
  auto const before = trial.evaluate(batch);
  trial.step(batch), trial.step(batch);
  auto const mallocs = lockstep_test::mallocs.load();
  for (int step = 0; step < 300; ++step) {
    auto const loss = trial.step(batch);
    for (std::size_t i = 0; i < trial.values.size(); ++i)
      trial.values[i] -= trial.gradients[i] / static_cast<float>(loss.weight);
  }
  auto const counted = lockstep_test::mallocs - mallocs;
  CHECK(counted == 0);
  auto const after = trial.evaluate(batch);
  CAPTURE(after.sum / after.weight);
  CHECK(after.sum < before.sum / 5);
}
