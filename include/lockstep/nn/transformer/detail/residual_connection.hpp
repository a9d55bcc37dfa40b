// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/elementwise/add.hpp>
#include <lockstep/nn/normalization/layer_norm.hpp>
#include <lockstep/nn/random/dropout.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn::detail {

/// Other uses of the input of a part, later in forward.
enum class InputUse {
  shared,  ///< other code may read it
  last,    ///< only backward reads it
};

/// Residual connection around each part of a transformer layer, with normalization before or after the part.
class ResidualConnection {
 public:
  ResidualConnection(double dropout, bool norm_first) : dropout_(dropout), norm_first_(norm_first) {}

  /// Returns norm(x + dropout(part(x))), or x + dropout(part(norm(x))) with `norm_first`. The part's result must be new
  /// and used by no other code. The part must read its input by Linear. Both allow early reuse of memory.
  template <class Context, class Part>
  [[nodiscard]] SequenceOf<Context> apply(Context& context, LayerNorm const& norm, InputUse use,
                                          SequenceOf<Context> const& x, Part const& part) const {
    auto const sum =
        norm_first_ ? norm_before(context, norm, x, part) : norm.forward_in_place(context, x, part(x), dropout_);
    if (use == InputUse::last) context.release_until_backward(x.tokens);
    return sum;
  }

 private:
  template <class Context, class Part>
  [[nodiscard]] SequenceOf<Context> norm_before(Context& context, LayerNorm const& norm, SequenceOf<Context> const& x,
                                                Part const& part) const {
    auto const normalized = norm.forward(context, x);
    auto const added = part(normalized);
    context.release_until_backward(normalized.tokens);
    auto const sum = add(context, x, added, dropout_);
    context.release(added.tokens);
    return sum;
  }

  Dropout dropout_;
  bool norm_first_;
};

}}}  // namespace lockstep::nn::detail
