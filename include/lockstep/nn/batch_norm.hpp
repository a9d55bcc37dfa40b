// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <string>
#include <tuple>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/batch_norm.hpp>
#include <lockstep/nn/buffer.hpp>
#include <lockstep/nn/context.hpp>
#include <lockstep/nn/detail/of_batch.hpp>
#include <lockstep/nn/staging.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

using kernel::Activation;

struct BatchNormOptions {
  double epsilon = 1e-5;
  double momentum = 0.1;                     ///< share of the new statistics in the running ones
  Activation activation = Activation::none;  ///< in the same pass over memory; gelu is not offered
};

/// y = activation(weight * (x - mean) / sqrt(variance + epsilon) + bias), for each channel (the last axis). In training
/// mean and variance are those of all samples and places of the micro-batch on this replica, and running averages of
/// them are kept in buffers; in evaluation they are the running ones.
///
/// So a sample's output in training depends on the samples beside it: the gradient is not that of a larger batch cut
/// into pieces, and results depend on how the batch is split over ranks and micro-batches; under Reproducible, over
/// shards. The buffers are the replica's own; the first one's are what is evaluated and saved. A micro-batch with a
/// single value per channel is normalised to zero and leaves the running statistics alone, as one without samples does.
/// @shape weight, bias, running_mean, running_var [channels]
/// @determinism bitwise for one split of the batch, for any number of threads
/// @source Ioffe, Szegedy: Batch Normalization (2015); the running variance is divided by n - 1, as in PyTorch
class BatchNorm {
 public:
  /// @throws ConfigError unless channels is at least 1, epsilon above 0 and momentum in [0, 1], or for gelu
  explicit BatchNorm(Index channels, BatchNormOptions const& options = {})
      : weight_{{channels}, Initializer::constant(1)},
        bias_{{channels}, Initializer::constant(0)},
        running_mean_{{channels}, Initializer::constant(0)},
        running_variance_{{channels}, Initializer::constant(1)},
        options_(options) {
    expect<ConfigError>(channels >= 1 && options.epsilon > 0 && options.momentum >= 0 && options.momentum <= 1, [&] {
      return "BatchNorm: " + std::to_string(channels) + " channels, epsilon " + std::to_string(options.epsilon) +
             ", momentum " + std::to_string(options.momentum) +
             "; channels must be at least 1, epsilon above 0 and momentum in [0, 1]";
    });
    expect<ConfigError>(options.activation != Activation::gelu, [] {
      return std::string("BatchNorm: activation gelu; only none and relu are fused with it: apply nn::gelu after it");
    });
  }

  void visit(auto&& each) {
    each("weight", weight_);
    each("bias", bias_);
    each("running_mean", running_mean_);
    each("running_var", running_variance_);
  }

  [[nodiscard]] Index channels() const noexcept { return weight_.shape[0]; }

  /// @shape x […, channels]   @shape returns as x
  /// @throws ShapeError when x has other channels
  template <class Context, int Rank>
  [[nodiscard]] Variable<typename Context::Scalar, Rank, typename Context::Space> forward(
      Context& context, Variable<typename Context::Scalar, Rank, typename Context::Space> x) const {
    using Real = typename Context::Real;
    using Operand = nn::Operand<Context>;
    using Kernel = kernel::BatchNorm<typename Context::Space>;
    check(x.value.extent);
    auto y = context.template variable<Rank>(x.value.extent);
    Extents<2> const matrix{x.value.size() / channels(), channels()};
    Staging work(context);
    auto const from = work.read(x.value).reshape(matrix);
    auto const by = statistics(context, from);
    Kernel::template forward<Operand>(context.stream(), from, by, context.template value<1>(bias_), options_.activation,
                                      work.write(y.value).reshape(matrix));
    context.on_backward(y, std::tie(weight_, bias_), [this, x, y, matrix, by](Context& c) {
      Staging back(c);
      auto const dy = back.read(y.gradient()).reshape(matrix);
      auto const dx = back.gradient_in_place(x, y);
      auto const dweight = c.gradient(weight_), dbias = c.gradient(bias_);
      auto const partial = c.template temporary<Real>(Extents<1>{Kernel::partial_elements(matrix[0], channels())});
      Kernel::template backward<Operand>(c.stream(), dy, back.read(x.value).reshape(matrix), by,
                                         c.template value<1>(bias_), options_.activation, {dx.data, matrix}, dx.write,
                                         {dweight.data, {channels()}}, dweight.write, {dbias.data, {channels()}},
                                         dbias.write, partial.data);
    });
    return y;
  }
  /// Says that it takes a Variable.
  template <class Context, detail::OfBatch X>
  typename Context::template Variable<2> forward(Context&, X const& x) const {
    return detail::refuse_batch<typename Context::template Variable<2>>(x);
  }

 private:
  /// Those of the rows at hand, towards which the running ones move, or the running ones themselves.
  template <class Context>
  [[nodiscard]] auto statistics(Context& context,
                                TensorView<Operand<Context> const, 2, typename Context::Space> x) const {
    using Real = typename Context::Real;
    using Kernel = kernel::BatchNorm<typename Context::Space>;
    auto const make = [&] { return context.template temporary<Real>(Extents<1>{channels()}); };
    typename Kernel::template Statistics<Real> const statistics{make(), make(), make()};
    typename Kernel::template Running<Real> const running{context.template value<1>(running_mean_),
                                                          context.template value<1>(running_variance_)};
    auto const weight = context.template value<1>(weight_);
    if (context.recording()) {
      auto const partial =
          context.template temporary<Real>(Extents<1>{Kernel::partial_elements(x.extent[0], channels())});
      auto const momentum = context.replaying() ? 0 : options_.momentum;  // the same rows count once
      Kernel::template measure<Operand<Context>>(context.stream(), x, weight, options_.epsilon, momentum, running,
                                                 statistics, partial.data);
    } else {
      Kernel::template recall<Real>(context.stream(), running, weight, options_.epsilon, statistics);
    }
    return statistics;
  }

  template <std::size_t Rank>
  void check(std::array<Index, Rank> const& x) const {
    expect<ShapeError>(x.back() == channels(), [&] {
      return weight_.layer("BatchNorm") + ": the input is " + to_string(x) + " and the layer has " +
             std::to_string(channels()) + " channels; the last extent must be " + std::to_string(channels());
    });
  }

  Parameter weight_, bias_;
  Buffer running_mean_, running_variance_;
  BatchNormOptions options_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
