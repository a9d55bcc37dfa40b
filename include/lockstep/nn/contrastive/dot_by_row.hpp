// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <tuple>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/reduction/dot_by_row.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/autograd/staging.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Scalar product of each pair of rows: z[r] = a[r] . b[r], as (a * b).sum(-1) in PyTorch. Use it for the score of a
/// user and an item. For rows from l2_normalize it is their cosine similarity. With one-hot rows in b it selects one
/// column of each row, as a.gather(-1, index) does. dot_products multiplies every row with every other.
/// @shape a, b [rows, width]   @shape returns [rows, 1]
/// @determinism bitwise, for any number of threads
/// @throws ShapeError if the shapes differ
template <class Context>
[[nodiscard]] VariableOf<Context, 2> dot_by_row(Context& context, VariableOf<Context, 2> a, VariableOf<Context, 2> b) {
  using Operand = nn::Operand<Context>;
  using Kernel = kernel::DotByRow<typename Context::Space>;
  expect<ShapeError>(a.value.extent == b.value.extent, [&] {
    return "dot_by_row: the sides are " + to_string(a.value.extent) + " and " + to_string(b.value.extent) +
           "; their shapes must be equal";
  });
  auto const z = context.template variable<2>({a.extent(0), 1});
  Extents<1> const rows{a.extent(0)};
  {
    Staging work(context);
    Kernel::template forward<Operand>(context.stream(), work.read(a.value), work.read(b.value),
                                      work.write(z.value).reshape(rows));
  }
  context.on_backward(z, std::tuple{}, [a, b, z, rows](Context& c) {
    Staging back(c);
    auto const dz = back.read(z.gradient()).reshape(rows);
    auto const backward_of = [&](auto const& side, auto const& other) {
      if (auto const to = back.gradient(side))
        Kernel::template backward<Operand>(c.stream(), dz, back.read(other.value), {to.data, side.value.extent},
                                           to.write);
    };
    backward_of(a, b);
    backward_of(b, a);
  });
  return z;
}
/// Scalar product for each token. Both sequences must have one layout.
template <class Context>
[[nodiscard]] SequenceOf<Context> dot_by_row(Context& context, SequenceOf<Context> const& a,
                                             SequenceOf<Context> const& b) {
  return a.with(dot_by_row(context, a.tokens, b.tokens));
}
/// Rejects calls without the context in front, or with arguments that are no activations, at compile time.
template <class... Arguments>
requires(!detail::takes_activations<2, Arguments...>) auto dot_by_row(Arguments const&... arguments) {
  return detail::reject_call(arguments...);
}

}}}  // namespace lockstep::nn
