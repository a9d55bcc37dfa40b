// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <string>
#include <tuple>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/shortest.hpp>
#include <lockstep/kernel/normalization/group_norm.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/staging.hpp>
#include <lockstep/nn/linear/activation_option.hpp>
#include <lockstep/nn/normalization/detail/channel_norm.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Options of GroupNorm: epsilon and fused activation.
struct GroupNormOptions {
  double epsilon = 1e-5;                           ///< added to the variance, above 0
  ActivationOption activation = Activation::none;  ///< fused into the same pass: none or relu
};

/// Group normalization: y = activation(weight * (x - mean) / sqrt(variance + epsilon) + bias). Mean and variance are
/// taken over all positions of a sample and a group of adjacent channels. One group is a LayerNorm over the whole
/// sample; as many groups as channels are an InstanceNorm. Unlike BatchNorm's, a sample's output does not depend on
/// other samples. Small batches therefore train equally well, splits of a batch do not change the gradient, and
/// training and evaluation compute the same.
/// @shape weight, bias [channels]
/// @determinism bitwise, for any number of threads
/// @source Wu, He: Group Normalization (2018)
class GroupNorm : public detail::ChannelNorm {
 public:
  using ChannelNorm::forward;  // overload that rejects other arguments

  /// @throws ConfigError unless groups is at least 1 and epsilon above 0, or for an activation other than none and
  /// relu; ShapeError unless groups divides channels
  GroupNorm(Index groups, Index channels, GroupNormOptions const& options = {})
      : ChannelNorm(channels), groups_(groups), options_(options) {
    expect<ConfigError>(groups >= 1 && channels >= 1 && options.epsilon > 0, [&] {
      return "GroupNorm: " + std::to_string(groups) + " groups, " + std::to_string(channels) +
             " channels and epsilon " + shortest(options.epsilon) +
             "; groups and channels must be at least 1, epsilon above 0";
    });
    expect<ShapeError>(channels % groups == 0, [&] {
      return "GroupNorm: " + std::to_string(groups) + " groups do not divide " + std::to_string(channels) +
             " channels; groups must be of equal size";
    });
    check_activation("GroupNorm", options.activation);
  }

  /// Names "weight" and "bias".
  void visit(auto&& each) {
    each("weight", weight_);
    each("bias", bias_);
  }

  /// Normalizes each group of channels of each sample.
  /// @shape x [rows, …, channels]   @shape returns as x
  /// @throws ShapeError if x has other channels
  template <class Context, int Rank>
  [[nodiscard]] VariableOf<Context, Rank> forward(Context& context, VariableOf<Context, Rank> x) const {
    using Real = typename Context::Real;
    using Operand = nn::Operand<Context>;
    using Kernel = kernel::GroupNorm<typename Context::Space>;
    check_channels("GroupNorm", x.value.extent);
    auto const rows = x.value.extent[0];
    kernel::GroupNormShape const shape{rows, rows > 0 ? x.value.size() / rows / channels() : 0, channels(), groups_};
    auto const y = context.template variable<Rank>(x.value.extent);
    auto const make = [&] { return context.template temporary<Real>(Extents<2>{rows, channels()}).data; };
    typename Kernel::template Statistics<Real> const statistics{make(), make()};
    {
      Staging work(context);
      auto const from = work.read(x.value);
      auto const partial = work.temporary(Extents<1>{Kernel::partial_elements(shape)});
      Kernel::template forward<Operand>(context.stream(), shape, from.data, options_.epsilon, statistics,
                                        context.template value<1>(weight_).data, context.template value<1>(bias_).data,
                                        options_.activation, work.write(y.value).data, partial.data);
    }
    context.on_backward(y, std::tie(weight_, bias_), [this, x, y, shape, statistics](Context& c) {
      Staging back(c);
      auto const dy = back.read(y.gradient());
      auto const dx = back.gradient_in_place(x, y);
      auto const dweight = c.gradient(weight_), dbias = c.gradient(bias_);
      auto const partial = back.temporary(Extents<1>{Kernel::partial_elements(shape)});
      Kernel::template backward<Operand>(c.stream(), shape, dy.data, back.read(c.saved_value(x)).data, statistics,
                                         c.template value<1>(weight_).data, c.template value<1>(bias_).data,
                                         options_.activation, dx.data, dx.write, dweight.data, dweight.write,
                                         dbias.data, dbias.write, partial.data);
    });
    return y;
  }

 private:
  Index groups_;
  GroupNormOptions options_;
};

}}}  // namespace lockstep::nn
