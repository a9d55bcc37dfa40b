// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <tuple>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/shortest.hpp>
#include <lockstep/kernel/random/sample_dropout.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/autograd/staging.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>
#include <lockstep/nn/random/dropout.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Stochastic depth, at the end of a residual branch. In training, y = x / (1 - p) for a random 1 - p of the samples
/// and 0 for the others, which skip the branch. The choice differs in every forward pass. In evaluation, or with p = 0,
/// the identity.
/// @determinism bitwise: a sample's choice is the same on any rank, in any row, with any padding
/// @source Huang et al.: Deep Networks with Stochastic Depth (2016); by sample as in torchvision's mode "row"
class StochasticDepth : detail::RejectedCalls<2> {
 public:
  /// @throws ConfigError unless 0 <= probability < 1
  explicit StochasticDepth(double probability) : dropout_(checked(probability)) {}

  /// Names nothing: there are no parameters.
  void visit(auto&&) {}

  /// Keeps or drops each sequence as a whole.
  /// @throws ShapeError if the sequences have no positions
  template <class Context>
  [[nodiscard]] SequenceOf<Context> forward(Context& context, SequenceOf<Context> const& x) const {
    return x.with(drop(context, x.tokens, x.layout));
  }

  /// Keeps or drops each vector, image, video or time series as a whole.
  /// @shape x [rows, …, channels]   @shape positions [rows], each sample's position in the epoch: the random key
  /// @throws ShapeError if the number of positions is not the number of rows
  template <class Context, int Rank>
  [[nodiscard]] VariableOf<Context, Rank> forward(Context& context, VariableOf<Context, Rank> x,
                                                  TensorView<Index const, 1, typename Context::Space> positions) const {
    auto const tokens = detail::as_tokens(x, positions);
    return drop(context, tokens.tokens, tokens.layout).reshape(x.value.extent);
  }
  /// Rejects calls without the context in front, or without an input, at compile time.
  using detail::RejectedCalls<2>::forward;

 private:
  [[nodiscard]] static double checked(double probability) {
    expect<ConfigError>(probability >= 0 && probability < 1, [&] {
      return "StochasticDepth: probability " + shortest(probability) + "; it must be in [0, 1); 0 turns it off";
    });
    return probability;
  }

  template <class Context>
  VariableOf<Context, 2> drop(Context& context, VariableOf<Context, 2> x,
                              kernel::SequenceLayout<typename Context::Space> layout) const {
    using Kernel = kernel::SampleDropout<typename Context::Space>;
    using Operand = nn::Operand<Context>;
    auto const mask = dropout_.mask(context);
    if (!mask.active()) return x;
    expect<ShapeError>(layout.positions.size() == layout.rows, [&] {
      return "StochasticDepth: the input has " + std::to_string(layout.rows) + " samples and there are " +
             std::to_string(layout.positions.size()) + " positions; each sample needs one: batch.positions()";
    });
    auto const y = context.template variable<2>(x.value.extent);
    {
      Staging work(context);
      Kernel::template apply<Operand>(context.stream(), mask, layout, work.read(x.value), work.write(y.value),
                                      Write::overwrite);
    }
    context.on_backward(y, std::tuple{}, [=](Context& c) {
      Staging back(c);
      auto const dy = back.read(y.gradient());
      if (auto const dx = back.gradient_in_place(x, y))
        Kernel::template apply<Operand>(c.stream(), mask, layout, dy, {dx.data, x.value.extent}, dx.write);
    });
    return y;
  }

  Dropout dropout_;  // each sample's first mask element decides
};

}}}  // namespace lockstep::nn
