// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <tuple>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/add.hpp>
#include <lockstep/nn/context.hpp>
#include <lockstep/nn/dropout.hpp>
#include <lockstep/nn/sequence.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

/// z = x + y elementwise: a residual connection. LayerNorm takes a second input for one that is normalised at once.
/// @determinism bitwise, for any number of threads
/// @throws ShapeError when the shapes differ
template <class Context>
[[nodiscard]] typename Context::template Variable<2> add(Context& context, typename Context::template Variable<2> x,
                                                         typename Context::template Variable<2> y) {
  using Scalar = typename Context::Scalar;
  using Kernel = kernel::Add<typename Context::Space>;
  expect<ShapeError>(x.value.extent == y.value.extent, [&] {
    return "add: the sides are " + to_string(x.value.extent) + " and " + to_string(y.value.extent) +
           "; they must be alike";
  });
  auto z = context.template variable<2>(x.value.extent);
  Extents<1> const flat{z.value.size()};
  Kernel::template forward<Scalar>(context.stream(), x.value.reshape(flat), y.value.reshape(flat),
                                   z.value.reshape(flat));
  context.on_backward(z, std::tuple{}, [x, y, z, flat](Context& c) {
    if (auto const dx = c.gradient(x))
      Kernel::template backward<Scalar>(c.stream(), z.gradient().reshape(flat), {dx.data, flat}, dx.write);
    if (auto const dy = c.gradient(y))
      Kernel::template backward<Scalar>(c.stream(), z.gradient().reshape(flat), {dy.data, flat}, dy.write);
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
