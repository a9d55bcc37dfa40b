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
#include <lockstep/nn/detail/argument_checks.hpp>
#include <lockstep/nn/linear/activation_option.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/random/dropout.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// y = second(dropout(activation(first(x)))) at every slot of a sequence: the feed-forward part of a transformer.
/// Activation and dropout run while the first matrix product is in cache. Forward keeps the slopes instead of the
/// inputs, so that backward only multiplies.
/// @determinism bitwise, for any number of threads
class FeedForward : detail::RejectedSequenceCalls {
 public:
  /// @throws ConfigError unless width and inner are at least 1, 0 <= dropout < 1 and activation is not none
  FeedForward(Index width, Index inner, double dropout = 0, ActivationOption activation = Activation::gelu)
      : first_(checked(width, inner), inner), second_(inner, width), dropout_(dropout), activation_(activation) {
    expect<ConfigError>(activation != Activation::none, [] {
      return std::string(
          "FeedForward: activation none; without an activation both maps are a single linear map: use another");
    });
  }

  /// Names the maps "first" and "second".
  void visit(auto&& each) {
    each("first", first_);
    each("second", second_);
  }

  /// Returns the transformed tokens.
  /// @shape x [slots, width]   @shape returns as x
  /// @throws ShapeError if x has another width
  template <class Context>
  [[nodiscard]] SequenceOf<Context> forward(Context& context, SequenceOf<Context> const& x) const;
  /// Rejects calls without the context in front, or without an input, at compile time.
  using detail::RejectedSequenceCalls::forward;

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
  SequenceOf<Context> forward_with_recompute(Context& context, SequenceOf<Context> const& x) const;

  Linear first_, second_;
  Dropout dropout_;
  Activation activation_;
};

}}}  // namespace lockstep::nn

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/nn/transformer/feed_forward.ipp>
#endif
