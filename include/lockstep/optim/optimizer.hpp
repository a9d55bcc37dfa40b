// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <string>

#include <lockstep/memory/space.hpp>
#include <lockstep/memory/stream.hpp>
#include <lockstep/optim/slice.hpp>
#include <lockstep/optim/step_scalars.hpp>

namespace lockstep::inline LOCKSTEP_ABI::optim {

/// An immutable rule for one step: how many arenas of state it needs, and what it does to a slice of them. It holds no
/// state of its own, so that any part of the arena can be stepped anywhere.
template <class O, class Scalar = float, class Space = HostSpace>
concept Optimizer = std::copy_constructible<O> &&
    requires(O const& optimizer, memory::Stream<Space> stream, Slice<Scalar, Space> slice,
             StepScalars<Space> const* scalars) {
  { O::states } -> std::convertible_to<int>;
  { optimizer.learning_rate } -> std::convertible_to<double>;
  optimizer.step(stream, slice, scalars);
};

/// What it calls itself; nothing where it has no name.
template <class O>
[[nodiscard]] std::string name_of() {
  if constexpr (requires { O::name(); })
    return O::name();
  else
    return {};
}

}  // namespace lockstep::inline LOCKSTEP_ABI::optim
