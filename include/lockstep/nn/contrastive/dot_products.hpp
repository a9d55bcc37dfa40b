// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <tuple>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/element_type.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/gemm/gemm.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/staging.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Scalar products of every row of a with every row of b: y[i, j] = factor * sum over c of a[i, c] b[j, c]. For rows
/// from nn::l2_normalize they are cosine similarities, the logits of a contrastive loss. a and b may be the same
/// variable.
/// @shape a [rows, width]   @shape b [others, width]   @shape returns [rows, others]
/// @determinism bitwise, for any number of threads
/// @throws ShapeError if the widths differ
template <class Context>
[[nodiscard]] VariableOf<Context, 2> dot_products(Context& context, VariableOf<Context, 2> a, VariableOf<Context, 2> b,
                                                  double factor = 1) {
  using Operand = nn::Operand<Context>;
  using Kernel = kernel::Gemm<typename Context::Space>;
  using Number = Accumulate<Operand>;
  expect<ShapeError>(a.extent(1) == b.extent(1), [&] {
    return "dot_products: a is " + to_string(a.value.extent) + " and b " + to_string(b.value.extent) +
           "; their rows must be equally long";
  });
  auto const y = context.template variable<2>({a.extent(0), b.extent(0)});
  auto const scale = static_cast<Number>(factor);
  {
    Staging work(context);
    Kernel::template multiply<Operand>(context.stream(), scale, work.read(a.value), kernel::Transpose::no,
                                       work.read(b.value), kernel::Transpose::yes, Number{0}, work.write(y.value));
  }
  context.on_backward(y, std::tuple{}, [a, b, y, scale](Context& c) {
    Staging back(c);
    auto const dy = back.read(y.gradient());
    auto const to = [&](auto const& x, kernel::Transpose transpose, auto const& other) {
      if (auto const dx = back.gradient(x))
        Kernel::template multiply<Operand>(c.stream(), scale, dy, transpose, back.read(c.saved_value(other)),
                                           kernel::Transpose::no, Number(dx.write == Write::add ? 1 : 0),
                                           {dx.data, x.value.extent});
    };
    to(a, kernel::Transpose::no, b);
    to(b, kernel::Transpose::yes, a);
  });
  return y;
}

}}}  // namespace lockstep::nn
