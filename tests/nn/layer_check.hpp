// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/thread_pool.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/loss.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/nn/autograd/pass.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/module/gradient_check.hpp>

#include "number.hpp"

/// A layer as a model: its input is a parameter, so that the gradient of its input is checked like any other. The loss
/// is a fixed random combination of its outputs.
namespace layer_check {
using lockstep::HostSpace;
using lockstep::Index;
namespace nn = lockstep::nn;

using lockstep_test::number;

/// A batch of sequences that has only lengths.
struct Batch {
  Index rows = 1, length = 1;
  std::vector<std::int32_t> lengths =
      std::vector<std::int32_t>(static_cast<std::size_t>(rows), static_cast<std::int32_t>(length));
  std::vector<Index> positions = [this] {
    std::vector<Index> out(static_cast<std::size_t>(rows));
    std::iota(out.begin(), out.end(), Index{7});
    return out;
  }();

  [[nodiscard]] nn::SequenceLayout<HostSpace> layout() const {
    return nn::SequenceLayout<HostSpace>::padded(length, {lengths.data(), {rows}}, {positions.data(), {rows}});
  }
  [[nodiscard]] bool padding(Index slot) const {
    return slot % length >= lengths[static_cast<std::size_t>(slot / length)];
  }
};

/// The parameter's value as an activation.
template <class Context>
nn::VariableOf<Context, 2> variable_of(Context& context, nn::Parameter const& p) {
  auto const y = context.template variable<2>({p.shape[0], p.shape[1]});
  auto const value = context.template value<2>(p);
  std::copy_n(value.data, value.size(), y.value.data);
  context.on_backward(y, std::tie(p), [&p, y](Context& c) {
    auto const dp = c.gradient(p);
    for (Index i = 0; i < y.value.size(); ++i)
      dp.data[i] = (dp.write == lockstep::Write::add ? dp.data[i] : 0) + y.gradient().data[i];
  });
  return y;
}

/// sum over the tokens (without padding, as in every loss) of a random number times the output.
template <class Context>
nn::Loss<HostSpace> random_loss(Context& context, nn::VariableOf<Context, 2> y, Batch const& batch) {
  double sum = 0;
  auto const dy = context.gradient(y);
  for (Index i = 0; i < y.value.size(); ++i) {
    double const w = batch.padding(i / y.extent(1)) ? 0 : number(99, i);
    sum += w * static_cast<double>(y.value.data[i]);
    if (dy) dy.data[i] = static_cast<typename Context::Scalar>(w) + (dy.write == lockstep::Write::add ? dy.data[i] : 0);
  }
  return {sum, 1};
}

/// `Apply` calls the layer: apply(context, layer, Sequence) -> Variable<2> or Sequence.
template <class Layer, class Apply>
class Model {
 public:
  Model(Layer layer, Index slots, Index width, Apply apply)
      : layer_(std::move(layer)), input_{{slots, width}, nn::Initializer::normal(1)}, apply_(apply) {}
  void visit(auto&& each) {
    each("input", input_);
    each("layer", layer_);
  }
  template <class Context>
  nn::LossOf<Context> forward(Context& context, Batch const& batch) const {
    auto const x = variable_of(context, input_);
    auto const y = apply_(context, layer_, nn::SequenceOf<Context>{x, batch.layout()});
    if constexpr (requires { y.tokens; }) {
      return random_loss(context, y.tokens, batch);
    } else {
      return random_loss(context, y, batch);
    }
  }

 private:
  Layer layer_;
  nn::Parameter input_;
  Apply apply_;
};

/// Arbitrary parameters: all of size around one, regardless of their initializer.
template <class Scalar>
[[nodiscard]] std::vector<Scalar> some_values(nn::ParameterLayout const& layout) {
  std::vector<Scalar> out(static_cast<std::size_t>(layout.size()));
  for (Index i = 0; i < layout.size(); ++i)
    out[static_cast<std::size_t>(i)] = static_cast<Scalar>(static_cast<float>(number(5, i)));
  return out;
}

template <class Layer, class Apply>
[[nodiscard]] nn::GradientCheckResult check(Layer layer, Index width, Batch const& batch, Apply apply,
                                            nn::GradientCheckOptions const& options = {}) {
  Model model(std::move(layer), batch.rows * batch.length, width, apply);
  auto const layout = nn::ParameterLayout::of(model);
  auto values = some_values<double>(layout);
  return nn::check_gradients(model, layout, values, batch, options);
}

template <class Scalar>
struct Pass {
  double loss = 0;
  std::vector<Scalar> gradients;
  friend bool operator==(Pass const& a, Pass const& b) {
    return std::memcmp(&a.loss, &b.loss, sizeof a.loss) == 0 && a.gradients.size() == b.gradients.size() &&
           std::memcmp(a.gradients.data(), b.gradients.data(), a.gradients.size() * sizeof(Scalar)) == 0;
  }
};

/// Loss and all gradients after `micro_batches` repetitions of one micro-batch.
template <class Scalar, class Layer, class Apply>
[[nodiscard]] Pass<Scalar> run(Layer layer, Index width, Batch const& batch, Apply apply, int threads,
                               int micro_batches = 1) {
  Model model(std::move(layer), batch.rows * batch.length, width, apply);
  auto const layout = nn::ParameterLayout::of(model);
  auto const values = some_values<Scalar>(layout);
  Pass<Scalar> pass{0, std::vector<Scalar>(values.size(), Scalar(0))};
  lockstep::ThreadPool pool(threads);
  nn::Context<Scalar, HostSpace> context{lockstep::memory::Stream<HostSpace>(pool)};
  context.parameters().bind(values.data(), pass.gradients.data(), layout.entries().size());
  nn::Pass(context).begin_step();
  for (int i = 0; i < micro_batches; ++i) {
    nn::Pass(context).begin_micro_batch(nn::Mode::training, 3);
    pass.loss += model.forward(context, batch).sum;
    nn::Pass(context).backward({});
  }
  return pass;
}

/// The loss in evaluation.
template <class Scalar, class Layer, class Apply>
[[nodiscard]] double evaluate(Layer layer, Index width, Batch const& batch, Apply apply) {
  Model model(std::move(layer), batch.rows * batch.length, width, apply);
  auto const layout = nn::ParameterLayout::of(model);
  auto const values = some_values<Scalar>(layout);
  lockstep::ThreadPool pool(1);
  nn::Context<Scalar, HostSpace> context{lockstep::memory::Stream<HostSpace>(pool)};
  context.parameters().bind(values.data(), nullptr, layout.entries().size());
  nn::Pass(context).begin_micro_batch(nn::Mode::evaluation, 3);
  return model.forward(context, batch).sum;
}

/// The layer's error message for two rows of two tokens; empty if it accepts them.
template <class Layer, class Apply>
[[nodiscard]] std::string refusal(Layer layer, Index width, Apply apply) {
  try {
    static_cast<void>(run<float>(std::move(layer), width, {.rows = 2, .length = 2}, apply, 1));
  } catch (lockstep::ShapeError const& error) {
    return error.what();
  }
  return "";
}

}  // namespace layer_check
