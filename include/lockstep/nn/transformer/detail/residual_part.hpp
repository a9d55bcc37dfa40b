// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/elementwise/add.hpp>
#include <lockstep/nn/normalization/layer_norm.hpp>
#include <lockstep/nn/random/dropout.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn::detail {

/// Tells whether other parts read a part's input later in forward.
enum class Reader {
  one_of_several,
  last,  ///< only backward reads it
};

/// Returns norm(x + dropout(part(x))), or x + dropout(part(norm(x))) with `norm_first`. The part's result must be new
/// and used by no other code. The part must read its input by Linear. Both allow early reuse of memory.
template <class Context, class Part>
[[nodiscard]] SequenceOf<Context> residual_part(Context& context, LayerNorm const& norm, Dropout const& dropout,
                                                bool norm_first, Reader reader, SequenceOf<Context> const& x,
                                                Part const& part) {
  auto const joined = [&] {
    if (!norm_first) return norm.forward_in_place(context, x, part(x), dropout);
    auto const normalized = norm.forward(context, x);
    auto const made = part(normalized);
    context.release_until_backward(normalized.tokens);
    auto const y = add(context, x, made, dropout);
    context.release(made.tokens);
    return y;
  }();
  if (reader == Reader::last) context.release_until_backward(x.tokens);
  return joined;
}

}}}  // namespace lockstep::nn::detail
