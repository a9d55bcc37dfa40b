// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <tuple>

#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/copy/convert.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/parameter.hpp>
#include <lockstep/nn/autograd/staging.hpp>
#include <lockstep/nn/autograd/variable.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Returns a parameter as an activation, for compositions of library functions that read parameters of your own, such
/// as class centers or prototypes: `nn::variable_of<2>(context, centers_)`. A copy of its values; backward passes the
/// gradient on to the parameter, which must outlive the pass, as a member of the model does.
/// @tparam Rank of the parameter's shape
/// @determinism bitwise, for any number of threads
/// @throws ConfigError if the model's visit does not name the parameter; ShapeError if it has another rank
template <int Rank, class Context>
[[nodiscard]] VariableOf<Context, Rank> variable_of(Context& context, Parameter const& parameter) {
  using Convert = kernel::Convert<typename Context::Space>;
  using Scalar = typename Context::Scalar;
  using Real = typename Context::Real;
  auto const from = context.template value<Rank>(parameter);
  auto const out = context.template variable<Rank>(from.extent);
  Extents<1> const flat{from.size()};
  Convert::template run<Scalar, Real>(context.stream(), from.reshape(flat), out.value.reshape(flat));
  context.on_backward(out, std::tie(parameter), [&parameter, out, flat](Context& c) {
    auto const to = c.gradient(parameter);
    Convert::template run<Real, Scalar>(c.stream(), {out.gradient().data, flat}, {to.data, flat}, to.write);
  });
  return out;
}

}}}  // namespace lockstep::nn
