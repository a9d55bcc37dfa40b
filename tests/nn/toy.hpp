// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <tuple>
#include <vector>

#include <lockstep/core/thread_pool.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/loss.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>

/// A model small enough to differentiate by hand: y = scale * x + shift per element, loss = sum (y - target)^2. `scale`
/// can be used any number of times, to test fan-out and shared parameters.
namespace toy {
using lockstep::Index;
namespace nn = lockstep::nn;

struct Batch {
  std::vector<double> inputs, targets;
  std::int64_t count = static_cast<std::int64_t>(inputs.size());
  [[nodiscard]] Index rows() const { return static_cast<Index>(inputs.size()); }
};

/// y = p[0] * x, elementwise.
template <class Context>
auto multiply(Context& context, nn::Parameter const& p, nn::VariableOf<Context, 1> x) {
  auto y = context.template variable<1>(x.value.extent);
  auto const factor = context.template value<1>(p)(0);
  for (Index i = 0; i < x.extent(0); ++i) y.value(i) = factor * x.value(i);
  context.on_backward(y, std::tie(p), [&p, x, y](Context& c) {
    using T = typename Context::Scalar;
    T sum = 0;
    for (Index i = 0; i < x.extent(0); ++i) sum += y.gradient()(i) * x.value(i);
    auto dp = c.gradient(p);
    *dp.data = dp.write == lockstep::Write::add ? *dp.data + sum : sum;
    if (auto dx = c.gradient(x)) {
      auto const slope = c.template value<1>(p)(0);
      for (Index i = 0; i < x.extent(0); ++i)
        dx.data[i] = (dx.write == lockstep::Write::add ? dx.data[i] : T(0)) + slope * y.gradient()(i);
    }
  });
  return y;
}

/// z = x + y, elementwise.
template <class Context, class V>
auto add(Context& context, V x, V y) {
  auto z = context.template variable<1>(x.value.extent);
  for (Index i = 0; i < x.extent(0); ++i) z.value(i) = x.value(i) + y.value(i);
  context.on_backward(z, std::tie(), [x, y, z](Context& c) {
    for (auto const& v : {x, y})
      if (auto dv = c.gradient(v))
        for (Index i = 0; i < z.extent(0); ++i)
          dv.data[i] = (dv.write == lockstep::Write::add ? dv.data[i] : typename Context::Scalar(0)) + z.gradient()(i);
  });
  return z;
}

/// sum (y - target)^2, weight the number of elements.
template <class Context>
nn::Loss<lockstep::HostSpace> squared_error(Context& context, nn::VariableOf<Context, 1> y,
                                            std::vector<double> const& targets) {
  double sum = 0;
  auto dy = context.gradient(y);
  for (Index i = 0; i < y.extent(0); ++i) {
    auto const d = static_cast<double>(y.value(i)) - targets[static_cast<std::size_t>(i)];
    sum += d * d;
    if (dy) dy.data[i] = static_cast<typename Context::Scalar>(2 * d);
  }
  return {sum, static_cast<double>(y.extent(0))};
}

template <class Context>
auto inputs(Context& context, Batch const& batch) {
  return context.input(lockstep::TensorView<double const, 1, lockstep::HostSpace>(batch.inputs.data(), {batch.rows()}));
}

/// prediction = scale^2 x + scale x: `scale` is used twice and x more than once; `unused` is never used.
class Model {
 public:
  void visit(auto&& each) {
    each("unused", unused_);
    each("scale", scale_);
  }
  template <class Context>
  auto predict(Context& context, Batch const& batch) const {
    auto const once = multiply(context, scale_, inputs(context, batch));
    return add(context, multiply(context, scale_, once), once);
  }
  template <class Context>
  nn::LossOf<Context> forward(Context& context, Batch const& batch) const {
    return squared_error(context, predict(context, batch), batch.targets);
  }

 private:
  nn::Parameter unused_{{3}, nn::Initializer::constant(7)};
  nn::Parameter scale_{{1}, nn::Initializer::constant(0.5)};
};

}  // namespace toy
