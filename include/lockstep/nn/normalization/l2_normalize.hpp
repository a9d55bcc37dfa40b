// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <tuple>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/shortest.hpp>
#include <lockstep/kernel/normalization/l2_normalize.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/autograd/staging.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Options of l2_normalize.
struct L2NormalizeOptions {
  double epsilon = 1e-12;  ///< divisor of rows that are shorter
};

/// Divides each row by its length: y[r] = x[r] / max(|x[r]|, epsilon), as torch.nn.functional.normalize. The scalar
/// product of two such rows is their cosine similarity.
/// @shape x and the result [rows, width]
/// @determinism bitwise, for any number of threads
/// @throws ConfigError for an epsilon that is not above 1e-30, the least whose reciprocal is safe in float
template <class Context>
[[nodiscard]] VariableOf<Context, 2> l2_normalize(Context& context, VariableOf<Context, 2> x,
                                                  L2NormalizeOptions const& options = {}) {
  using Operand = nn::Operand<Context>;
  using Real = typename Context::Real;
  using Kernel = kernel::L2Normalize<typename Context::Space>;
  expect<ConfigError>(options.epsilon > 1e-30, [&] {
    return "l2_normalize: epsilon is " + shortest(options.epsilon) + "; it must be above 1e-30, and 1e-12 is usual";
  });
  auto const epsilon = static_cast<Real>(options.epsilon);
  auto const y = context.template variable<2>(x.value.extent);
  TensorView<Real, 1, typename Context::Space> reciprocals{};
  if (context.recording()) reciprocals = context.template temporary<Real>(Extents<1>{x.extent(0)});
  {
    Staging work(context);
    Kernel::template forward<Operand>(context.stream(), work.read(x.value), epsilon, reciprocals, work.write(y.value));
  }
  context.on_backward(y, std::tuple{}, [x, y, epsilon, reciprocals](Context& c) {
    Staging back(c);
    auto const dy = back.read(y.gradient());
    if (auto const dx = back.gradient(x))
      Kernel::template backward<Operand>(c.stream(), dy, back.read(x.value), epsilon, reciprocals,
                                         {dx.data, x.value.extent}, dx.write);
  });
  return y;
}
/// Divides each token by its length.
template <class Context>
[[nodiscard]] SequenceOf<Context> l2_normalize(Context& context, SequenceOf<Context> const& x,
                                               L2NormalizeOptions const& options = {}) {
  return x.with(l2_normalize(context, x.tokens, options));
}

}}}  // namespace lockstep::nn
