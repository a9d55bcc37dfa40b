// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <tuple>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/channels.hpp>
#include <lockstep/nn/context.hpp>
#include <lockstep/nn/sequence.hpp>
#include <lockstep/nn/staging.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

/// y = x and the others side by side: row r is row r of each, one after the other, as torch.cat along the last axis.
/// Where it feeds a Linear, one Linear for each part and `add` are the same without the copy.
/// @shape x, others [rows, any width]   @shape returns [rows, sum of the widths]
/// @determinism bitwise, for any number of threads
/// @throws ShapeError when the numbers of rows differ
template <class Context, class... Others>
requires(sizeof...(Others) > 0) [[nodiscard]]
typename Context::template Variable<2> concatenate_channels(Context& context, typename Context::template Variable<2> x,
                                                            Others const&... others) {
  using Operand = nn::Operand<Context>;
  using Kernel = kernel::Channels<typename Context::Space>;
  std::array<typename Context::template Variable<2>, 1 + sizeof...(Others)> const parts{x, others...};
  Index width = 0;
  for (auto const& part : parts) {
    expect<ShapeError>(part.extent(0) == x.extent(0), [&] {
      return "concatenate_channels: the first part is " + to_string(x.value.extent) + " and another " +
             to_string(part.value.extent) + "; they must have as many rows";
    });
    width += part.extent(1);
  }
  auto const y = context.template variable<2>({x.extent(0), width});
  {
    Staging work(context);
    auto const to = work.write(y.value);
    Index first = 0;
    for (auto const& part : parts) {
      Kernel::template put<Operand>(context.stream(), work.read(part.value), first, to);
      first += part.extent(1);
    }
  }
  context.on_backward(y, std::tuple{}, [parts, y](Context& c) {
    Staging back(c);
    auto const dy = back.read(y.gradient());
    Index first = 0;
    for (auto const& part : parts) {
      if (auto const dx = back.gradient(part))
        Kernel::template take<Operand>(c.stream(), dy, first, {dx.data, part.value.extent}, dx.write);
      first += part.extent(1);
    }
  });
  return y;
}

/// The same for each token of sequences that have one layout.
template <class Context, class... Others>
requires(sizeof...(Others) > 0)
    [[nodiscard]] Sequence<typename Context::Scalar, typename Context::Space> concatenate_channels(
        Context& context, Sequence<typename Context::Scalar, typename Context::Space> const& x,
        Others const&... others) {
  return x.with(concatenate_channels(context, x.tokens, others.tokens...));
}

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
