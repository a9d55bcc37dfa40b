// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <tuple>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/copy/channels.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/autograd/staging.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Concatenates channels, as torch.cat along the last axis: row r of y is row r of x followed by row r of each other.
/// Images are concatenated pixel by pixel, as in a U-Net's skip connection. Before a Linear, one Linear for each part
/// and `add` compute the same without the copy.
/// @shape x, others [rows, …, any width]   @shape returns [rows, …, sum of the widths]
/// @determinism bitwise, for any number of threads
/// @throws ShapeError if extents other than the last differ
template <class Context, int Rank, class... Others>
requires(sizeof...(Others) > 0)
    [[nodiscard]] VariableOf<Context, Rank> concatenate_channels(Context& context, VariableOf<Context, Rank> x,
                                                                 Others const&... others) {
  using Operand = nn::Operand<Context>;
  using Kernel = kernel::Channels<typename Context::Space>;
  std::array<VariableOf<Context, Rank>, 1 + sizeof...(Others)> const parts{x, others...};
  auto extent = x.value.extent;
  extent.back() = 0;
  for (auto const& part : parts) {
    expect<ShapeError>(std::equal(extent.begin(), extent.end() - 1, part.value.extent.begin()), [&] {
      return "concatenate_channels: the first part is " + to_string(x.value.extent) + " and another " +
             to_string(part.value.extent) + "; all extents except the last must be equal";
    });
    extent.back() += part.value.extent.back();
  }
  auto const y = context.template variable<Rank>(extent);
  {
    Staging work(context);
    auto const to = work.write(y.as_rows().value);
    Index first = 0;
    for (auto const& part : parts) {
      Kernel::template put<Operand>(context.stream(), work.read(part.as_rows().value), first, to);
      first += part.value.extent.back();
    }
  }
  context.on_backward(y, std::tuple{}, [parts, y](Context& c) {
    Staging back(c);
    auto const dy = back.read(y.as_rows().gradient());
    Index first = 0;
    for (auto const& part : parts) {
      if (auto const dx = back.gradient(part))
        Kernel::template take<Operand>(c.stream(), dy, first, {dx.data, part.as_rows().value.extent}, dx.write);
      first += part.value.extent.back();
    }
  });
  return y;
}

/// Concatenates the channels of each token. All sequences must have one layout.
template <class Context, class... Others>
requires(sizeof...(Others) > 0)
    [[nodiscard]] SequenceOf<Context> concatenate_channels(Context& context, SequenceOf<Context> const& x,
                                                           Others const&... others) {
  return x.with(concatenate_channels(context, x.tokens, others.tokens...));
}

}}}  // namespace lockstep::nn
