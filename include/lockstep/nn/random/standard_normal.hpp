// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/random/standard_normal.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/autograd/staging.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Returns independent standard normal numbers in the shape of x (torch.randn_like). They are new in every step and in
/// every prediction of a Predictor. Evaluations draw the same numbers each time. For variational autoencoders and
/// diffusion models. No gradient flows into them. Padding is zero.
/// @throws ShapeError if a sequence has no position
/// @determinism bitwise: a sample gets the same numbers on any rank, in any row, with any padding
template <class Context>
[[nodiscard]] SequenceOf<Context> standard_normal_like(Context& context, SequenceOf<Context> const& x) {
  expect<ShapeError>(x.layout.positions.size() == x.layout.rows, [&] {
    return "standard_normal_like: x has " + std::to_string(x.layout.rows) + " sequences and there are " +
           std::to_string(x.layout.positions.size()) + " positions; each needs one: batch.positions()";
  });
  auto const numbers = context.template temporary<typename Context::Scalar>(x.tokens.value.extent);
  auto const mask = context.next_mask(0);
  Staging work(context);
  kernel::StandardNormal<typename Context::Space>::template fill<Operand<Context>>(context.stream(), mask, x.layout,
                                                                                   work.write(numbers));
  return x.with({numbers, nullptr});
}

/// Returns standard normal numbers for one vector, image, video or time series per sample.
/// @shape x [rows, …, width]   @shape positions [rows], each sample's position in the epoch, batch.positions(): the
/// random key
/// @throws ShapeError unless there is one position for each row
template <class Context, int Rank>
requires(Rank > 1) [[nodiscard]] VariableOf<Context, Rank> standard_normal_like(
    Context& context, VariableOf<Context, Rank> x, TensorView<Index const, 1, typename Context::Space> positions) {
  expect<ShapeError>(x.extent(0) == positions.size(), [&] {
    return "standard_normal_like: x is " + to_string(x.value.extent) + " and there are " +
           std::to_string(positions.size()) + " positions; each row needs its sample's position (batch.positions())";
  });
  return standard_normal_like(context, detail::as_tokens(x, positions)).tokens.reshape(x.value.extent);
}

/// Returns a vector of `width` independent standard normal numbers for each sample (torch.randn), such as the input of
/// a GAN's generator. Equals standard_normal_like of an x of this shape.
/// @shape positions [rows], each sample's position in the epoch, batch.positions(): the random key
template <class Context>
[[nodiscard]] VariableOf<Context, 2> standard_normal(Context& context,
                                                     TensorView<Index const, 1, typename Context::Space> positions,
                                                     Index width) {
  VariableOf<Context, 2> const shape{{nullptr, {positions.size(), width}}};  // only its extents are read
  return standard_normal_like(context, shape, positions);
}

}}}  // namespace lockstep::nn
