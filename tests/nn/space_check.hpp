// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <vector>

#include <lockstep/core/thread_pool.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/loss.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/nn/autograd/pass.hpp>
#include <lockstep/nn/module/gradient_check.hpp>
#include <lockstep/nn/module/initialize.hpp>

#include "number.hpp"

/// A spatial layer as a model: its input is a parameter, so that the gradient of its input is checked too, and the loss
/// is a fixed random combination of its outputs.
namespace space_check {
using namespace lockstep;

using lockstep_test::number;
struct Batch {};

/// `Apply` calls the layer: apply(context, layer, Variable<Rank>) -> a Variable of any rank.
template <class Layer, int Rank, class Apply>
class Model {
 public:
  Model(Layer layer, Extents<Rank> extent, Apply apply)
      : layer_(std::move(layer)), input_{{extent.begin(), extent.end()}, {}}, apply_(apply) {}
  void visit(auto&& each) {
    each("input", input_);
    each("layer", layer_);
  }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, Batch const&) const {
    using Scalar = typename Context::Scalar;
    auto const from = context.template value<Rank>(input_);
    auto const x = context.template variable<Rank>(from.extent);
    std::copy_n(from.data, from.size(), x.value.data);
    context.on_backward(x, std::tie(input_), [this, x](Context& c) {
      auto const dp = c.gradient(input_);
      for (Index i = 0; i < x.value.size(); ++i)
        dp.data[i] = (dp.write == Write::add ? dp.data[i] : 0) + x.gradient().data[i];
    });
    auto const y = apply_(context, layer_, x);
    double sum = 0;
    auto const dy = context.gradient(y);
    for (Index i = 0; i < y.value.size(); ++i) {
      double const w = number(99, i);
      sum += w * static_cast<double>(y.value.data[i]);
      if (dy) dy.data[i] = static_cast<Scalar>(w) + (dy.write == Write::add ? dy.data[i] : 0);
    }
    return {sum, 1};
  }

 private:
  Layer layer_;
  nn::Parameter input_;
  Apply apply_;
};

/// A model with its own arenas; parameters are all of size around one, regardless of their initializer.
template <class Scalar, class Layer, int Rank, class Apply>
struct Trial {
  Model<Layer, Rank, Apply> model;
  nn::ParameterLayout layout;
  std::vector<Scalar> values, gradients, buffers;

  Trial(Layer layer, Extents<Rank> extent, Apply apply)
      : model(std::move(layer), extent, apply), layout(nn::ParameterLayout::of(model)) {
    for (Index i = 0; i < layout.size(); ++i) values.push_back(static_cast<Scalar>(static_cast<float>(number(5, i))));
    gradients.assign(values.size(), Scalar(0));
    buffers.resize(static_cast<std::size_t>(layout.buffer_size()));
    nn::initialize_buffers(layout, buffers.data());
  }
  [[nodiscard]] nn::GradientCheckResult check(nn::GradientCheckOptions const& options = {}) {
    return nn::check_gradients(model, layout, values, Batch{}, options);
  }
  /// The sum of the losses of `micro_batches` repetitions of one micro-batch; gradients and buffers remain.
  double run(int threads, int micro_batches = 1, nn::Mode mode = nn::Mode::training) {
    ThreadPool pool(threads);
    nn::Context<Scalar, HostSpace> context{memory::Stream<HostSpace>(pool)};
    context.parameters().bind(values.data(), gradients.data(), layout.entries().size());
    context.parameters().bind_buffers(buffers.data());
    nn::Pass(context).begin_step();
    double loss = 0;
    for (int i = 0; i < micro_batches; ++i) {
      nn::Pass(context).begin_micro_batch(mode, 3);
      loss += model.forward(context, Batch{}).sum;
      nn::Pass(context).backward({});
    }
    return loss;
  }
};
template <class Scalar, std::size_t Rank, class Layer, class Apply>
[[nodiscard]] auto trial(Layer layer, std::array<Index, Rank> extent, Apply apply) {
  return Trial<Scalar, Layer, static_cast<int>(Rank), Apply>(std::move(layer), extent, apply);
}

template <class Scalar>
[[nodiscard]] bool same_bits(std::vector<Scalar> const& a, std::vector<Scalar> const& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(Scalar)) == 0;
}

}  // namespace space_check
