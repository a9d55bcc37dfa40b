// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <tuple>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/sequence/sequence_operation.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/autograd/staging.hpp>
#include <lockstep/nn/elementwise/detail/binary_operation.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Elementwise z = x * y: a gate. Backward reads both sides, which may be the same variable.
/// @determinism bitwise, for any number of threads
/// @throws ShapeError if the shapes differ
template <class Context, int Rank>
[[nodiscard]] VariableOf<Context, Rank> multiply(Context& context, VariableOf<Context, Rank> x,
                                                 VariableOf<Context, Rank> y) {
  detail::BinaryOperation<kernel::Times, Context, Rank> const made(context, "multiply", x, y);
  context.on_backward(made.output(), std::tuple{}, [made](Context& c) { made.backward(c); });
  return made.output();
}
template <class Context>
[[nodiscard]] SequenceOf<Context> multiply(Context& context, SequenceOf<Context> const& x,
                                           SequenceOf<Context> const& y) {
  return x.with(multiply(context, x.tokens, y.tokens));
}

/// Multiplies every token by the factors of its sequence: z[s, c] = x[s, c] * factors[r, c] for the slots s of sequence
/// r. Use it with factors computed from nn::mean_pool.
/// @shape x [slots, width]   @shape factors [rows, width]   @shape returns as x
/// @determinism bitwise, for any number of threads
/// @throws ShapeError if the factors do not have one row per sequence and the channels of x
template <class Context>
[[nodiscard]] SequenceOf<Context> multiply(Context& context, SequenceOf<Context> const& x,
                                           VariableOf<Context, 2> factors) {
  using Operand = nn::Operand<Context>;
  using Kernel = kernel::SequenceOperation<typename Context::Space>;
  expect<ShapeError>(factors.value.extent == Extents<2>{x.layout.rows, x.width()}, [&] {
    return "multiply: the factors are " + to_string(factors.value.extent) + " of " +
           to_string(Extents<2>{x.layout.rows, x.width()}) + ", the rows and channels of x; the two must be equal";
  });
  auto const z = context.template variable<2>(x.tokens.value.extent);
  {
    Staging work(context);
    Kernel::template run<kernel::Times, Operand>(context.stream(), x.layout, work.read(x.tokens.value),
                                                 work.read(factors.value), work.write(z.value), Write::overwrite);
  }
  context.on_backward(z, std::tuple{}, [x, factors, z](Context& c) {
    Staging back(c);
    auto const dz = back.read(z.gradient());
    if (auto const dx = back.gradient(x.tokens))
      Kernel::template run<kernel::Times, Operand>(c.stream(), x.layout, dz, back.read(c.saved_value(factors)),
                                                   {dx.data, z.value.extent}, dx.write);
    if (auto const dfactors = back.gradient(factors))
      Kernel::template backward<kernel::Times, Operand>(c.stream(), x.layout, dz, back.read(c.saved_value(x.tokens)),
                                                        {dfactors.data, factors.value.extent}, dfactors.write);
  });
  return x.with(z);
}
/// Multiplies every pixel, voxel or time step by the factors of its row, channel by channel. With factors computed from
/// nn::global_average_pool this is squeeze and excitation.
/// @shape x [rows, extent…, channels]   @shape factors [rows, channels]   @shape returns as x
template <class Context, int Rank>
requires(Rank > 2) [[nodiscard]] VariableOf<Context, Rank> multiply(Context& context, VariableOf<Context, Rank> x,
                                                                    VariableOf<Context, 2> factors) {
  return multiply(context, detail::as_tokens(x), factors).tokens.reshape(x.value.extent);
}

}}}  // namespace lockstep::nn
