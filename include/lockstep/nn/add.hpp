// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <tuple>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/add.hpp>
#include <lockstep/nn/context.hpp>
#include <lockstep/nn/dropout.hpp>
#include <lockstep/nn/sequence.hpp>
#include <lockstep/nn/staging.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

/// z = x + y elementwise: a residual connection. LayerNorm takes a second input for one that is normalised at once.
/// @determinism bitwise, for any number of threads
/// @throws ShapeError when the shapes differ
template <class Context>
[[nodiscard]] typename Context::template Variable<2> add(Context& context, typename Context::template Variable<2> x,
                                                         typename Context::template Variable<2> y) {
  using Operand = nn::Operand<Context>;
  using Kernel = kernel::Add<typename Context::Space>;
  expect<ShapeError>(x.value.extent == y.value.extent, [&] {
    return "add: the sides are " + to_string(x.value.extent) + " and " + to_string(y.value.extent) +
           "; they must be alike";
  });
  auto z = context.template variable<2>(x.value.extent);
  Extents<1> const flat{z.value.size()};
  {
    Staging work(context);
    Kernel::template forward<Operand>(context.stream(), work.read(x.value).reshape(flat),
                                      work.read(y.value).reshape(flat), work.write(z.value).reshape(flat));
  }
  context.on_backward(z, std::tuple{}, [x, y, z, flat](Context& c) {
    Staging back(c);
    auto const dz = back.read(z.gradient()).reshape(flat);
    if (auto const dx = back.gradient(x)) Kernel::template backward<Operand>(c.stream(), dz, {dx.data, flat}, dx.write);
    if (auto const dy = back.gradient(y)) Kernel::template backward<Operand>(c.stream(), dz, {dy.data, flat}, dy.write);
  });
  return z;
}
template <class Context>
[[nodiscard]] Sequence<typename Context::Scalar, typename Context::Space> add(
    Context& context, Sequence<typename Context::Scalar, typename Context::Space> const& x,
    Sequence<typename Context::Scalar, typename Context::Space> const& y) {
  return x.with(add(context, x.tokens, y.tokens));
}
/// z = x + dropout(y): the residual connection around a part of a transformer.
template <class Context>
[[nodiscard]] Sequence<typename Context::Scalar, typename Context::Space> add(
    Context& context, Sequence<typename Context::Scalar, typename Context::Space> const& x,
    Sequence<typename Context::Scalar, typename Context::Space> const& y, Dropout const& dropout) {
  return add(context, x, dropout.forward(context, y));
}

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
