// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstdint>
#include <tuple>
#include <vector>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/philox.hpp>
#include <lockstep/core/thread_pool.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/loss.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/nn/autograd/pass.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/module/gradient_check.hpp>
#include <lockstep/nn/module/initialize.hpp>

/// Shared by tests of sequence layers: a batch of padded ids, learned activations, a loss with a gradient in every
/// token's elements, and one run of forward and backward.
namespace lockstep_test {
namespace nn = lockstep::nn;
using lockstep::HostSpace;
using lockstep::Index;
using lockstep::TensorView;

/// Rows of the given lengths, padded to `length` with id 0; ids are below `vocabulary` and above 0.
struct TokenBatch {
  Index rows = 0, length = 0;
  std::vector<std::int32_t> ids, lengths, labels;
  std::vector<Index> positions;

  TokenBatch(std::vector<std::int32_t> row_lengths, Index padded_length, std::int32_t vocabulary)
      : rows(static_cast<Index>(row_lengths.size())), length(padded_length), lengths(std::move(row_lengths)) {
    for (Index r = 0; r < rows; ++r) {
      positions.push_back(5 + 3 * r);
      labels.push_back(static_cast<std::int32_t>(r % 3));
      for (Index t = 0; t < length; ++t)
        ids.push_back(t < lengths[static_cast<std::size_t>(r)]
                          ? static_cast<std::int32_t>(1 + (7 * r + 5 * t) % (vocabulary - 1))
                          : 0);
    }
  }
  struct Column {
    TensorView<std::int32_t const, 2, HostSpace> values;
    TensorView<std::int32_t const, 1, HostSpace> lengths;
  };
  [[nodiscard]] Column tokens() const { return {{ids.data(), {rows, length}}, {lengths.data(), {rows}}}; }
  [[nodiscard]] TensorView<Index const, 1, HostSpace> places() const { return {positions.data(), {rows}}; }
  [[nodiscard]] TensorView<std::int32_t const, 1, HostSpace> classes() const { return {labels.data(), {rows}}; }
  [[nodiscard]] nn::SequenceLayout<HostSpace> layout() const {
    return nn::SequenceLayout<HostSpace>::padded(length, tokens().lengths, places());
  }
};

/// A parameter as an activation, so that the gradient checker covers the gradient of a layer's input.
template <class Context>
nn::VariableOf<Context, 2> learned(Context& context, nn::Parameter const& p) {
  auto const from = context.template value<2>(p);
  auto x = context.template variable<2>(from.extent);
  for (Index i = 0; i < from.size(); ++i) x.value.data[i] = static_cast<typename Context::Scalar>(from.data[i]);
  context.on_backward(x, std::tie(p), [&p, x](Context& c) {
    auto const to = c.gradient(p);
    for (Index i = 0; i < x.value.size(); ++i)
      to.data[i] = x.gradient().data[i] + (to.write == lockstep::Write::add ? to.data[i] : 0);
  });
  return x;
}

/// Sum over elements of w y + y^2 / 2 with an irregular w; elements of padding slots are left out and get gradient
/// zero.
template <class Context>
nn::Loss<HostSpace> irregular_loss(Context& context, nn::VariableOf<Context, 2> y,
                                   nn::SequenceLayout<HostSpace> const* layout = nullptr) {
  using Scalar = typename Context::Scalar;
  auto const dy = context.gradient(y);
  nn::Loss<HostSpace> loss{0, static_cast<double>(y.extent(0))};
  for (Index i = 0; i < y.value.size(); ++i) {
    auto const slot = i / y.extent(1);
    bool const counts = !layout || slot - layout->start(layout->row_of(slot)) < layout->tokens(layout->row_of(slot));
    double const w = std::sin(1.0 + 1.7 * static_cast<double>(i)), value = static_cast<double>(y.value.data[i]);
    if (counts) loss.sum += w * value + value * value / 2;
    if (dy)
      dy.data[i] = static_cast<Scalar>(counts ? w + value : 0) + (dy.write == lockstep::Write::add ? dy.data[i] : 0);
  }
  return loss;
}

/// A model with its own arenas, ready to run.
template <class Model, class Scalar>
class Trial {
 public:
  Model model;
  nn::ParameterLayout layout;
  using Real = lockstep::Accumulate<Scalar>;
  std::vector<Real> values, gradients, buffers;

  explicit Trial(Model m, int threads = 1)
      : model(std::move(m)),
        layout(nn::ParameterLayout::of(model)),
        pool_(threads),
        context_(lockstep::memory::Stream<HostSpace>(pool_)) {
    std::vector<double> exact(static_cast<std::size_t>(layout.size()));
    nn::initialize(layout, 3, exact.data());
    for (double v : exact) values.push_back(static_cast<Real>(static_cast<float>(v)));
    gradients.assign(values.size(), Real{0});
    context_.parameters().bind(values.data(), gradients.data(), layout.entries().size());
    buffers.resize(static_cast<std::size_t>(layout.buffer_size()));
    nn::initialize_buffers(layout, buffers.data());
    context_.parameters().bind_buffers(buffers.data());
  }

  [[nodiscard]] nn::Context<Scalar, HostSpace>& context() { return context_; }

  template <class Batch>
  nn::Loss<HostSpace> step(Batch const& batch, std::uint64_t key = 1) {
    nn::Pass(context_).begin_step();
    nn::Pass(context_).begin_micro_batch(nn::Mode::training, key);
    auto const loss = model.forward(context_, batch);
    nn::Pass(context_).backward({});
    return loss;
  }
  template <class Batch>
  nn::Loss<HostSpace> evaluate(Batch const& batch) {
    nn::Pass(context_).begin_micro_batch(nn::Mode::evaluation, 1);
    return model.forward(context_, batch);
  }

 private:
  lockstep::ThreadPool pool_;
  nn::Context<Scalar, HostSpace> context_;
};

template <class Model, class Batch>
[[nodiscard]] nn::GradientCheckResult check_model(Model model, Batch const& batch) {
  Trial<Model, double> trial(std::move(model));
  return nn::check_gradients(trial.model, trial.layout, trial.values, batch, {.max_per_parameter = 200});
}

}  // namespace lockstep_test
