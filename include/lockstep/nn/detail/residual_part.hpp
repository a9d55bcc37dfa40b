// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/nn/add.hpp>
#include <lockstep/nn/context.hpp>
#include <lockstep/nn/dropout.hpp>
#include <lockstep/nn/layer_norm.hpp>
#include <lockstep/nn/sequence.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn::detail {

/// Whether others read what a part takes.
enum class Reader {
  one_of_several,
  last,  ///< nobody does, but backward
};

/// norm(x + dropout(part(x))), or x + dropout(part(norm(x))). What the part makes must be new and nobody else's, and
/// the part must read its input by Linear: both make room for what comes next.
template <class Context, class Part>
[[nodiscard]] SequenceOf<Context> residual_part(Context& context, LayerNorm const& norm, Dropout const& dropout,
                                                bool norm_first, Reader reader, SequenceOf<Context> const& x,
                                                Part const& part) {
  auto const joined = [&] {
    if (!norm_first) return norm.forward_in_place(context, x, part(x), dropout);
    auto const normalized = norm.forward(context, x);
    auto const made = part(normalized);
    context.set_aside(normalized.tokens);
    auto const y = add(context, x, made, dropout);
    context.release(made.tokens);
    return y;
  }();
  if (reader == Reader::last) context.set_aside(x.tokens);
  return joined;
}

}  // namespace lockstep::inline LOCKSTEP_ABI::nn::detail
