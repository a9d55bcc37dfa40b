// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <string>
#include <tuple>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/shortest.hpp>
#include <lockstep/kernel/normalization/batch_norm.hpp>
#include <lockstep/nn/autograd/buffer.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/replica_group.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/autograd/staging.hpp>
#include <lockstep/nn/linear/activation_option.hpp>
#include <lockstep/nn/normalization/detail/channel_norm.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Options of BatchNorm: statistics, fused activation, synchronization over ranks.
struct BatchNormOptions {
  double epsilon = 1e-5;                           ///< added to the variance, above 0
  double momentum = 0.1;                           ///< weight of the new statistics in the running averages
  ActivationOption activation = Activation::none;  ///< fused into the same pass: none or relu
  /// Computes statistics over the rows of all ranks or devices, like PyTorch's SyncBatchNorm. Costs two small exchanges
  /// for each micro-batch.
  bool synchronized = false;
};

/// Batch normalization: y = activation(weight * (x - mean) / sqrt(variance + epsilon) + bias) for each channel (the
/// last axis). In training, mean and variance are taken over all samples and positions of the micro-batch on this
/// replica. Buffers keep running averages of both, which evaluation uses.
///
/// In training, a sample's output thus depends on the other samples of its micro-batch. Results and gradients therefore
/// depend on the split of the batch over ranks and micro-batches; under Reproducible, over shards. Each replica has its
/// own buffers; evaluations and checkpoints use the first replica's. A micro-batch with a single value per channel is
/// normalized to zero and leaves the running statistics unchanged, like one without samples.
///
/// With `synchronized`, mean and variance are taken over all replicas' micro-batches. Except for rounding, outputs,
/// gradients and buffers then equal those of one device with all samples. They are equal on all replicas.
///
/// For a Sequence, mean and variance are taken over its tokens alone. Padding of any length is skipped and gives zeros.
/// @shape weight, bias, running_mean, running_var [channels]
/// @determinism bitwise for one split of the batch, for any number of threads
/// @collective in training, with `synchronized`: all ranks must call it equally often
/// @source Ioffe, Szegedy: Batch Normalization (2015); the running variance is divided by n - 1, as in PyTorch
class BatchNorm : public detail::ChannelNorm {
 public:
  using ChannelNorm::forward;  // overload that rejects other arguments

  /// @throws ConfigError unless channels is at least 1, epsilon above 0 and momentum in [0, 1], or for an activation
  /// other than none and relu
  explicit BatchNorm(Index channels, BatchNormOptions const& options = {})
      : ChannelNorm(channels),
        running_mean_{{channels}, Initializer::constant(0)},
        running_variance_{{channels}, Initializer::constant(1)},
        options_(options) {
    expect<ConfigError>(channels >= 1 && options.epsilon > 0 && options.momentum >= 0 && options.momentum <= 1, [&] {
      return "BatchNorm: " + std::to_string(channels) + " channels, epsilon " + shortest(options.epsilon) +
             ", momentum " + shortest(options.momentum) +
             "; channels must be at least 1, epsilon above 0 and momentum in [0, 1]";
    });
    check_activation("BatchNorm", options.activation);
  }

  /// Names "weight", "bias", and the buffers "running_mean" and "running_var".
  void visit(auto&& each) {
    each("weight", weight_);
    each("bias", bias_);
    each("running_mean", running_mean_);
    each("running_var", running_variance_);
  }

  /// Normalizes each channel.
  /// @shape x […, channels]   @shape returns as x
  /// @throws ShapeError if x has other channels
  template <class Context, int Rank>
  [[nodiscard]] VariableOf<Context, Rank> forward(Context& context, VariableOf<Context, Rank> x) const {
    return normalize(context, x, {});
  }
  /// Normalizes over the tokens of all sequences.
  template <class Context>
  [[nodiscard]] SequenceOf<Context> forward(Context& context, SequenceOf<Context> const& x) const {
    return x.with(normalize(context, x.tokens, x.layout));
  }

 private:
  /// Normalizes x. Skips rows that are no tokens of the layout.
  template <class Context, int Rank>
  [[nodiscard]] VariableOf<Context, Rank> normalize(Context& context, VariableOf<Context, Rank> x,
                                                    SequenceLayout<typename Context::Space> const& layout) const {
    using Real = typename Context::Real;
    using Operand = nn::Operand<Context>;
    using Kernel = kernel::BatchNorm<typename Context::Space>;
    check_channels("BatchNorm", x.value.extent);
    auto y = context.template variable<Rank>(x.value.extent);
    Extents<2> const matrix{x.value.size() / channels(), channels()};
    Staging work(context);
    auto const from = work.read(x.value).reshape(matrix);
    auto const by = statistics(context, from, layout);
    Kernel::template forward<Operand>(context.stream(), from, by.statistics, context.template value<1>(bias_),
                                      options_.activation, work.write(y.value).reshape(matrix), layout);
    context.on_backward(y, std::tie(weight_, bias_), [this, x, y, matrix, by, layout](Context& c) {
      Staging back(c);
      auto const dy = back.read(y.gradient()).reshape(matrix);
      auto const dx = back.gradient_in_place(x, y);
      auto const weight = c.gradient(weight_), bias = c.gradient(bias_);
      auto const values = back.read(x.value).reshape(matrix);
      TensorView<Operand, 2, typename Context::Space> const to{dx.data, matrix};
      TensorView<Real, 1, typename Context::Space> const dweight{weight.data, {channels()}},
          dbias{bias.data, {channels()}};
      auto const shift = c.template value<1>(bias_);
      auto* const partial = back.temporary(Extents<1>{Kernel::partial_elements(matrix[0], channels())}).data;
      if (!by.group)
        return Kernel::template backward<Operand>(c.stream(), dy, values, by.statistics, shift, options_.activation, to,
                                                  dx.write, dweight, weight.write, dbias, bias.write, partial, layout);
      auto const sums = back.temporary(Extents<2>{1 + by.group->size(), 2 * channels()});  // all sums, then their means
      auto* const means = sums.data + by.group->size() * 2 * channels();
      Kernel::template sums<Operand>(c.stream(), dy, values, by.statistics, shift, options_.activation, dweight,
                                     weight.write, dbias, bias.write, partial, means, layout);
      by.group->all_gather(means, sums.data, static_cast<std::size_t>(2 * channels()) * sizeof(Real));
      Kernel::template means<Real>(c.stream(), by.group->size(), channels(), sums.data, by.moments, means);
      Kernel::template input_gradient<Operand>(c.stream(), dy, values, by.statistics, shift, options_.activation, means,
                                               to, dx.write, layout);
    });
    return y;
  }

  /// Statistics that normalize a micro-batch. For a replica group also the moments of all replicas; the group is null
  /// for a single replica.
  template <class Context>
  struct Measured {
    typename kernel::BatchNorm<typename Context::Space>::template Statistics<typename Context::Real> statistics;
    ReplicaGroup* group = nullptr;
    double const* moments = nullptr;
  };

  /// Returns the micro-batch's statistics and updates the running ones, or returns the running ones in evaluation.
  template <class Context>
  [[nodiscard]] Measured<Context> statistics(Context& context,
                                             TensorView<Operand<Context> const, 2, typename Context::Space> x,
                                             SequenceLayout<typename Context::Space> const& layout) const {
    using Real = typename Context::Real;
    using Kernel = kernel::BatchNorm<typename Context::Space>;
    auto const make = [&] { return context.template temporary<Real>(Extents<1>{channels()}); };
    Measured<Context> measured{{make(), make(), make()}};
    typename Kernel::template Running<Real> const running{context.template value<1>(running_mean_),
                                                          context.template value<1>(running_variance_)};
    auto const weight = context.template value<1>(weight_);
    if (!context.recording()) {
      Kernel::template use_running_averages<Real>(context.stream(), running, weight, options_.epsilon,
                                                  measured.statistics);
      return measured;
    }
    auto const momentum = context.recomputing() ? 0 : options_.momentum;  // these rows are counted already
    Staging work(context);
    auto* const partial = work.temporary(Extents<1>{Kernel::partial_elements(x.extent[0], channels())}).data;
    if (options_.synchronized) measured.group = context.group();
    if (!measured.group) {
      Kernel::template measure<Operand<Context>>(context.stream(), x, weight, options_.epsilon, momentum, running,
                                                 measured.statistics, partial, layout);
      return measured;
    }
    auto const each = Kernel::moment_elements(channels());
    auto* const mine = work.template temporary<double>(Extents<1>{each}).data;
    auto* const all = context.template temporary<double>(Extents<2>{measured.group->size(), each}).data;
    Kernel::template moments<Operand<Context>>(context.stream(), x, partial, mine, layout);
    measured.group->all_gather(mine, all, static_cast<std::size_t>(each) * sizeof(double));
    Kernel::template measure_merged<Real>(context.stream(), measured.group->size(), all, weight, options_.epsilon,
                                          momentum, running, measured.statistics);
    measured.moments = all;
    return measured;
  }

  Buffer running_mean_, running_variance_;
  BatchNormOptions options_;
};

}}}  // namespace lockstep::nn
