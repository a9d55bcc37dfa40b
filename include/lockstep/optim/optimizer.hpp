// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <string>

#include <lockstep/memory/space.hpp>
#include <lockstep/memory/stream.hpp>
#include <lockstep/optim/slice.hpp>
#include <lockstep/optim/step_scalars.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace optim {

/// Requires an immutable update rule: its number of state arenas, and a step on a slice of the arenas. An optimizer
/// holds no state, so any rank or device can update any part of the arena.
template <class Candidate, class Scalar = float, class Space = HostSpace>
concept Optimizer = std::copy_constructible<Candidate> &&
    requires(Candidate const& optimizer, memory::Stream<Space> stream, Slice<Scalar, Space> slice,
             StepScalars<Space> const* scalars) {
  { Candidate::states } -> std::convertible_to<int>;
  { optimizer.learning_rate } -> std::convertible_to<double>;
  optimizer.step(stream, slice, scalars);
};

// Optional members of an optimizer, each with its default.

/// Returns the optimizer's name; empty if it has none.
template <class Candidate>
[[nodiscard]] std::string name_of() {
  if constexpr (requires { Candidate::name(); })
    return Candidate::name();
  else
    return {};
}
/// Calls each(name, value) for the settings that must be equal on all ranks, by `describe(each)`; none by default.
template <class Candidate, class Each>
void describe(Candidate const& optimizer, Each const& each) {
  if constexpr (requires { optimizer.describe(each); }) optimizer.describe(each);
}
/// Checks the optimizer's settings by `check()`; by default all settings are valid.
/// @throws ConfigError for a setting out of range
template <class Candidate>
void check_settings(Candidate const& optimizer) {
  if constexpr (requires { optimizer.check(); }) optimizer.check();
}
/// Returns whether the optimizer's step reads Slice::touched, by `takes_touched_rows`; false by default.
template <class Candidate>
[[nodiscard]] consteval bool takes_touched_rows() {
  if constexpr (requires { requires bool{Candidate::takes_touched_rows}; })
    return Candidate::takes_touched_rows;
  else
    return false;
}

}}}  // namespace lockstep::optim
