// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <string>
#include <type_traits>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/linear/linear.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/autograd/staging.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/random/dropout.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// y = second(dropout(activation(first(x)))) at every slot of a sequence: the feed-forward part of a transformer.
/// Activation and dropout run while the first matrix product is in cache. Forward keeps the slopes instead of the
/// inputs, so that backward only multiplies.
/// @determinism bitwise, for any number of threads
class FeedForward {
 public:
  /// @throws ConfigError unless width and inner are at least 1, 0 <= dropout < 1 and activation is not none
  FeedForward(Index width, Index inner, double dropout = 0, Activation activation = Activation::gelu)
      : first_(checked(width, inner), inner), second_(inner, width), dropout_(dropout), activation_(activation) {
    expect<ConfigError>(activation != Activation::none, [] {
      return std::string(
          "FeedForward: activation none; without an activation both maps are a single linear map: use gelu or relu");
    });
  }

  void visit(auto&& each) {
    each("first", first_);
    each("second", second_);
  }

  /// Returns the transformed tokens.
  /// @shape x [slots, width]   @shape returns as x
  /// @throws ShapeError if x has another width
  template <class Context>
  [[nodiscard]] SequenceOf<Context> forward(Context& context, SequenceOf<Context> const& x) const {
    auto const dropout = dropout_.mask(context, x.layout);
    if constexpr (std::is_same_v<typename Context::Scalar, typename Context::Real>)
      if (context.recording() && activation_ == Activation::gelu && !dropout.mask.active())
        return forward_with_recompute(context, x);
    auto const input = x.tokens;
    auto const activated = first_.forward(context, input, activation_, dropout);
    auto const hidden = activated.y;
    // hidden's gradient slot holds the gradient before the activation: the second layer's backward has multiplied by
    // the slope.
    first_.on_backward(context, hidden,
                       [this, input, hidden](Context& c) { first_.backward(c, input, hidden.gradient()); });

    auto const y = context.template variable<2>({input.extent(0), second_.outputs()});
    Staging work(context);
    kernel::Linear<typename Context::Space>::template forward<nn::Operand<Context>>(
        context.stream(), work.read(hidden.value), second_.weight(work), second_.bias(work), work.write(y.value));
    second_.on_backward(context, y, [this, hidden, slope = activated.slope, y](Context& c) {
      second_.backward(c, hidden, y.gradient(), slope);
    });
    return x.with(y);
  }

 private:
  /// Checks the sizes and names the options that the caller knows.
  static Index checked(Index width, Index inner) {
    expect<ConfigError>(width >= 1 && inner >= 1, [&] {
      return "FeedForward: the width is " + std::to_string(width) + " and the inner width (feed_forward) " +
             std::to_string(inner) + "; both must be at least 1";
    });
    return width;
  }
  /// Keeps only the values before the activation; backward applies it again. Works on as many rows at a time as fit the
  /// cache, so that the activated values never exist in full.
  template <class Context>
  SequenceOf<Context> forward_with_recompute(Context& context, SequenceOf<Context> const& x) const {
    using Kernel = kernel::Linear<typename Context::Space>;
    using Real = typename Context::Real;
    auto const input = x.tokens;
    first_.check(input.value.extent);
    auto const rows = input.extent(0);
    auto const before = context.template variable<2>({rows, first_.outputs()});
    auto const y = context.template variable<2>({rows, second_.outputs()});
    auto const block_rows = Kernel::rows_per_pass(context.stream(), rows);
    {
      Staging work(context);
      auto const hidden = work.temporary(Extents<2>{block_rows, first_.outputs()});
      for (Index row = 0, count; row < rows; row += count) {
        count = std::min(block_rows, rows - row);
        auto const part = [&](auto view, Index first) {
          view.data += first * view.extent[1];
          view.extent[0] = count;
          return view;
        };
        Kernel::template forward_gelu<Real>(context.stream(), part(input.value, row), first_.weight(work),
                                            first_.bias(work), part(before.value, row), part(hidden, 0));
        Kernel::template forward<Real>(context.stream(), part(hidden, 0), second_.weight(work), second_.bias(work),
                                       part(y.value, row));
      }
    }
    first_.on_backward(context, before,
                       [this, input, before](Context& c) { first_.backward(c, input, before.gradient()); });
    second_.on_backward(context, y,
                        [this, before, y](Context& c) { second_.backward_through_gelu(c, before, y.gradient()); });
    return x.with(y);
  }

  Linear first_, second_;
  Dropout dropout_;
  Activation activation_;
};

}}}  // namespace lockstep::nn
