// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <string>
#include <type_traits>

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
  requires !requires { requires std::is_member_pointer_v<decltype(&Candidate::states)>; };
  typename std::integral_constant<int, Candidate::states>;
  { optimizer.learning_rate } -> std::convertible_to<double>;
  optimizer.step(memory::Stream<Space>(stream), slice, scalars);
};

namespace detail {

/// Function of a setting, for the checks below.
struct AnySetting {
  template <class Value>
  void operator()(char const*, Value const&) const {}
};
/// Rejects optional members of an optimizer that cannot be called, and would be ignored, at compile time.
template <class Candidate>
consteval void expect_const_members() {
  static_assert(
      requires(Candidate const& optimizer, AnySetting each) { optimizer.describe(each); } ||
          !(
              requires(Candidate & optimizer, AnySetting each) { optimizer.describe(each); } ||
              requires { &Candidate::describe; }),
      "Lockstep: an optimizer's describe(auto&& each) is const, and calls each(name, value) for every setting; see "
      "docs/reference/optimizer.md");
  static_assert(
      requires(Candidate const& optimizer) { optimizer.check(); } || !requires { &Candidate::check; },
      "Lockstep: an optimizer's check() is const and takes no argument; see docs/reference/optimizer.md");
}

}  // namespace detail

// Optional members of an optimizer, each with its default.

/// Returns the optimizer's name; empty if it has none.
template <class Candidate>
[[nodiscard]] std::string name_of() {
  constexpr bool has_name = requires {
    { Candidate::name() } -> std::convertible_to<std::string>;
  };
  static_assert(
      has_name || !(
                      requires(Candidate const& optimizer) { optimizer.name(); } || requires { &Candidate::name; }),
      "Lockstep: an optimizer's name is `static char const* name()`; see docs/reference/optimizer.md");
  if constexpr (has_name)
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
  detail::expect_const_members<Candidate>();
  if constexpr (requires { optimizer.check(); }) optimizer.check();
}
/// Returns whether the optimizer's step reads Slice::touched, by `takes_touched_rows`; false by default.
template <class Candidate>
[[nodiscard]] consteval bool takes_touched_rows() {
  if constexpr (requires { typename std::bool_constant<Candidate::takes_touched_rows>; }) {
    return Candidate::takes_touched_rows;
  } else {
    static_assert(
        !requires(Candidate const& optimizer) { optimizer.takes_touched_rows; },
        "Lockstep: an optimizer's takes_touched_rows is `static constexpr bool takes_touched_rows = true`; "
        "see docs/reference/optimizer.md");
    return false;
  }
}

/// Returns whether the optimizer's step takes slices of one whole parameter each, by `whole_parameters`; false by
/// default.
template <class Candidate>
[[nodiscard]] consteval bool steps_whole_parameters() {
  if constexpr (requires { typename std::bool_constant<Candidate::whole_parameters>; }) {
    return Candidate::whole_parameters;
  } else {
    static_assert(
        !requires(Candidate const& optimizer) { optimizer.whole_parameters; },
        "Lockstep: an optimizer's whole_parameters is `static constexpr bool whole_parameters = true`; "
        "see docs/reference/optimizer.md");
    return false;
  }
}

}}}  // namespace lockstep::optim
