// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <tuple>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/copy/channels.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/autograd/staging.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Returns the channels [first, first + count) of x, as x[..., first : first + count] in PyTorch. Use it for one gate's
/// part of a Linear that computes all gates.
/// @shape x [rows, …, width]   @shape returns [rows, …, count]
/// @determinism bitwise, for any number of threads
/// @throws ShapeError if x does not have these channels
template <class Context, int Rank>
[[nodiscard]] VariableOf<Context, Rank> slice_channels(Context& context, VariableOf<Context, Rank> x, Index first,
                                                       Index count) {
  using Operand = nn::Operand<Context>;
  using Kernel = kernel::Channels<typename Context::Space>;
  expect<ShapeError>(first >= 0 && count >= 0 && first + count <= x.value.extent.back(), [&] {
    return "slice_channels: columns " + std::to_string(first) + " to " + std::to_string(first + count) + " of " +
           to_string(x.value.extent) + "; they must be within its columns";
  });
  auto extent = x.value.extent;
  extent.back() = count;
  auto const y = context.template variable<Rank>(extent);
  {
    Staging work(context);
    Kernel::template take<Operand>(context.stream(), work.read(x.as_rows().value), first, work.write(y.as_rows().value),
                                   Write::overwrite);
  }
  context.on_backward(y, std::tuple{}, [x, y, first](Context& c) {
    Staging back(c);
    if (auto const dx = back.gradient(x))
      Kernel::template take_backward<Operand>(c.stream(), back.read(y.as_rows().gradient()), first,
                                              {dx.data, x.as_rows().value.extent}, dx.write);
  });
  return y;
}

/// Returns the channels [first, first + count) of each token.
template <class Context>
[[nodiscard]] SequenceOf<Context> slice_channels(Context& context, SequenceOf<Context> const& x, Index first,
                                                 Index count) {
  return x.with(slice_channels(context, x.tokens, first, count));
}

}}}  // namespace lockstep::nn
