// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include <lockstep/core/index.hpp>
#include <lockstep/memory/space.hpp>
#include <lockstep/memory/stream.hpp>
#include <lockstep/optim/rate_rule.hpp>
#include <lockstep/optim/slice.hpp>
#include <lockstep/optim/step_scalars.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace optim {

/// Returns the number of optimizers that divide the parameters between them, by `parts` (optim::Partitioned); 1 by
/// default.
template <class Candidate>
[[nodiscard]] consteval int parts() {
  if constexpr (requires { typename std::integral_constant<int, Candidate::parts>; }) return Candidate::parts;
  return 1;
}

/// Requires an immutable update rule: its number of state arenas, and a step on a slice of the arenas. An optimizer
/// holds no state, so any rank or device can update any part of the arena.
template <class Candidate, class Scalar = float, class Space = HostSpace>
concept Optimizer = std::copy_constructible<Candidate> &&
    requires(Candidate const& optimizer, memory::Stream<Space> stream, Slice<Scalar, Space> slice,
             StepScalars<Space> const* scalars) {
  requires !requires { requires std::is_member_pointer_v<decltype(&Candidate::states)>; };
  typename std::integral_constant<int, Candidate::states>;
  { optimizer.learning_rate } -> std::convertible_to<double>;
  requires(parts<Candidate>() > 1) || requires { optimizer.step(memory::Stream<Space>(stream), slice, scalars); };
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
  static_assert(
      requires(Candidate const& optimizer, std::string_view name, std::span<Index const> shape) {
        optimizer.check_parameter(name, shape);
      } || !requires { &Candidate::check_parameter; },
      "Lockstep: an optimizer's check_parameter(std::string_view name, std::span<Index const> shape) is const; see "
      "docs/reference/optimizer.md");
  static_assert(
      requires(std::span<Index const> shape) {
        { Candidate::work_elements(shape) } -> std::convertible_to<Index>;
      } || !requires { &Candidate::work_elements; },
      "Lockstep: an optimizer's work_elements is `static Index work_elements(std::span<Index const> shape)`; see "
      "docs/reference/optimizer.md");
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
/// Returns the number, from 0, of the optimizer that updates a parameter of a layout, by `part_of(entry)`; 0 by
/// default.
template <class Candidate, class Entry>
[[nodiscard]] int part_of([[maybe_unused]] Candidate const& optimizer, [[maybe_unused]] Entry const& entry) {
  if constexpr (parts<Candidate>() > 1)
    return optimizer.part_of(entry);
  else
    return 0;
}
/// Returns f(optimizer of this number), by `with_part(part, f)`; f(optimizer) by default.
template <class Candidate, class Function>
decltype(auto) with_part(Candidate const& optimizer, [[maybe_unused]] int part, Function const& f) {
  if constexpr (parts<Candidate>() > 1)
    return optimizer.with_part(part, f);
  else
    return f(optimizer);
}
/// Checks the optimizer's settings, and each parameter that it changes by `check_parameter(name, shape)`; by default
/// parameters may have any shape.
/// @throws ConfigError for a setting out of range, or a parameter that the optimizer cannot update
template <class Candidate, class Layout>
void check_settings(Candidate const& optimizer, Layout const& layout) {
  check_settings(optimizer);
  for (auto const& entry : layout.entries())
    with_part(optimizer, part_of(optimizer, entry), [&](auto const& part) {
      if constexpr (requires { part.check_parameter(entry.name, entry.shape); })
        if (rate_of(optimizer, entry) != 0) part.check_parameter(entry.name, entry.shape);
    });
}
/// Returns the number of elements of work memory that the step of a parameter needs, by the static
/// `work_elements(shape)`; 0 by default.
template <class Candidate>
[[nodiscard]] Index work_elements([[maybe_unused]] std::span<Index const> shape) {
  if constexpr (requires {
                  { Candidate::work_elements(shape) } -> std::convertible_to<Index>;
                })
    return Candidate::work_elements(shape);
  else
    return 0;
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
