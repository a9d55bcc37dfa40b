// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <tuple>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/dot_by_row.hpp>
#include <lockstep/nn/context.hpp>
#include <lockstep/nn/sequence.hpp>
#include <lockstep/nn/staging.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

/// z[r] = a[r] . b[r], as (a * b).sum(-1) in PyTorch: how a user fits an item, or, of rows that l2_normalize has made,
/// the cosine of their angle. dot_products has every row meet every other.
/// @shape a, b [rows, width]   @shape returns [rows, 1]
/// @determinism bitwise, for any number of threads
/// @throws ShapeError when the shapes differ
template <class Context>
[[nodiscard]] VariableOf<Context, 2> dot_by_row(Context& context, VariableOf<Context, 2> a, VariableOf<Context, 2> b) {
  using Operand = nn::Operand<Context>;
  using Kernel = kernel::DotByRow<typename Context::Space>;
  expect<ShapeError>(a.value.extent == b.value.extent, [&] {
    return "dot_by_row: the sides are " + to_string(a.value.extent) + " and " + to_string(b.value.extent) +
           "; they must be alike";
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
    auto const towards = [&](auto const& side, auto const& other) {
      if (auto const to = back.gradient(side))
        Kernel::template backward<Operand>(c.stream(), dz, back.read(other.value), {to.data, side.value.extent},
                                           to.write);
    };
    towards(a, b);
    towards(b, a);
  });
  return z;
}
/// The same for each token of sequences that have one layout.
template <class Context>
[[nodiscard]] SequenceOf<Context> dot_by_row(Context& context, SequenceOf<Context> const& a,
                                             SequenceOf<Context> const& b) {
  return a.with(dot_by_row(context, a.tokens, b.tokens));
}

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
