// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <span>
#include <tuple>

#include <lockstep/nn/autograd/detail/tape.hpp>
#include <lockstep/nn/autograd/parameter.hpp>
#include <lockstep/nn/autograd/variable.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn::detail {

using Parameters = std::span<Parameter const* const>;

/// An operation of the forward pass as backward needs it: its closure, output and parameters.
template <class Context, class Scalar>
struct Operation {
  typename Tape<Context>::Entry backward;
  GradientSlot<Scalar>* output;
  Parameters parameters;
};

/// Returns the addresses of the parameters of a std::tie.
template <class... P>
[[nodiscard]] std::array<Parameter const*, sizeof...(P)> addresses(std::tuple<P const&...> const& parameters) {
  return std::apply([](auto const&... p) { return std::array<Parameter const*, sizeof...(P)>{&p...}; }, parameters);
}

}}}  // namespace lockstep::nn::detail
