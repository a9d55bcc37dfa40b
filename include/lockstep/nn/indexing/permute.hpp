// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <string>
#include <tuple>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/copy/permute.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/staging.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Returns x with its axes in another order, copied: axis k is axis axes[k] of x, as x.permute(axes) in PyTorch.
/// `permute(context, x, {0, 2, 1})` transposes each row of the batch, so that a Linear mixes tokens instead of
/// channels. With `reshape` before and after it, it divides images into windows or patches, and makes channels of
/// pixels.
/// @shape x [e0, e1, …]   @shape returns [e of axes[0], e of axes[1], …]
/// @determinism bitwise, for any number of threads
/// @throws ConfigError if axes do not name each axis once
template <class Context, int Rank>
[[nodiscard]] VariableOf<Context, Rank> permute(Context& context, VariableOf<Context, Rank> x,
                                                std::array<int, static_cast<std::size_t>(Rank)> const& axes) {
  static_assert(Rank <= int{kernel::PermuteShape::max_rank}, "Lockstep: permute takes at most 8 axes");
  using Operand = nn::Operand<Context>;
  using Kernel = kernel::Permute<typename Context::Space>;
  constexpr auto rank = static_cast<std::size_t>(Rank);
  std::array<int, rank> inverse;
  inverse.fill(-1);
  for (std::size_t k = 0; k < rank; ++k)
    if (axes[k] >= 0 && axes[k] < Rank) inverse[static_cast<std::size_t>(axes[k])] = static_cast<int>(k);
  Extents<Rank> extent{};
  for (std::size_t k = 0; k < rank; ++k) {
    expect<ConfigError>(inverse[k] >= 0, [&] {
      std::string given;
      for (int const axis : axes) given += (given.empty() ? "" : ", ") + std::to_string(axis);
      return "permute: axes {" + given + "} of " + to_string(x.value.extent) + " do not name axis " +
             std::to_string(k) + "; name each of the " + std::to_string(Rank) + " axes once, from 0";
    });
    extent[static_cast<std::size_t>(inverse[k])] = x.value.extent[k];
  }
  auto const y = context.template variable<Rank>(extent);
  Extents<1> const flat{x.value.size()};
  {
    Staging work(context);
    Kernel::template run<Operand>(context.stream(), kernel::PermuteShape::of(x.value.extent, axes),
                                  work.read(x.value).reshape(flat), work.write(y.value).reshape(flat),
                                  Write::overwrite);
  }
  context.on_backward(y, std::tuple{}, [x, y, inverse, flat](Context& c) {
    Staging back(c);
    if (auto const dx = back.gradient(x))
      Kernel::template run<Operand>(c.stream(), kernel::PermuteShape::of(y.value.extent, inverse),
                                    back.read(y.gradient()).reshape(flat), {dx.data, flat}, dx.write);
  });
  return y;
}

}}}  // namespace lockstep::nn
