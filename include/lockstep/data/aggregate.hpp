// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <lockstep/core/version.hpp>

namespace lockstep::inline LOCKSTEP_ABI::data {
namespace detail {

// Converts to whatever a member is, but never to the aggregate itself: that would count a copy as one member.
template <class Owner>
struct AnyMember {
  template <class T>
  requires(!std::same_as<std::remove_cvref_t<T>, Owner>) operator T() const {
    __builtin_unreachable();  // asked for its type only; without a body clang misses one
  }
};

template <class T, std::size_t... I>
consteval bool takes_members(std::index_sequence<I...>) {
  return requires { T{(static_cast<void>(I), AnyMember<T>{})...}; };
}

// Converts to the bases of an aggregate alone.
template <class Owner>
struct AnyBase {
  template <class T>
  requires(std::is_base_of_v<T, Owner> && !std::same_as<T, Owner>) operator T() const { __builtin_unreachable(); }
};

/// Whether what braces count begins with a base class.
template <class T>
consteval bool has_base() {
  return requires { T{AnyBase<T>{}}; };
}

/// Whether the members that braces count are all members, and no elements of a C array that braces may leave out: in
/// parentheses nothing is left out. (nvcc has these, and finds none that convert.)
template <class T, std::size_t... I>
consteval bool takes_members_one_by_one([[maybe_unused]] std::index_sequence<I...> all) {
#if defined(__cpp_aggregate_paren_init) && !defined(__CUDACC__)
  return requires { T((static_cast<void>(I), AnyMember<T>{})...); };
#else
  return takes_members<T>(all);
#endif
}

template <class T>
inline constexpr bool standard_array = false;
template <class T, std::size_t N>
inline constexpr bool standard_array<std::array<T, N>> = true;

inline constexpr std::size_t most_members = 16;

template <class T, std::size_t N = most_members + 1>
consteval std::size_t count_members() {
  if constexpr (N == 0) {
    return 0;
  } else if constexpr (takes_members<T>(std::make_index_sequence<N>{})) {
    return N;
  } else {
    return count_members<T, N - 1>();
  }
}

}  // namespace detail

/// A struct whose members Lockstep can list without a macro: a default-constructible aggregate without a base class. It
/// holds no C arrays, whose elements the language's rules for braces count as members; use std::array.
template <class T>
concept Aggregate =
    std::is_aggregate_v<T> && !std::is_array_v<T> && !detail::standard_array<T> && std::default_initializable<T>;

/// The number of members of an aggregate; 17 stands for "more than 16".
template <Aggregate T>
inline constexpr std::size_t member_count = detail::count_members<std::remove_const_t<T>>();

/// References to the members of an aggregate, in order of declaration, constant when the aggregate is.
template <class T>
requires Aggregate<std::remove_const_t<T>>
constexpr auto members(T& t) noexcept {
  constexpr auto count = member_count<std::remove_const_t<T>>;
  static_assert(count >= 1 && count <= detail::most_members,
                "Lockstep: a sample is an aggregate of 1 to 16 members; group members in a nested struct");
  static_assert(
      !detail::has_base<std::remove_const_t<T>>(),
      "Lockstep: a sample has no base class, whose members the language does not list with its own; make it a "
      "member");
  static_assert(detail::takes_members_one_by_one<std::remove_const_t<T>>(std::make_index_sequence<count>{}),
                "Lockstep: a sample holds no C arrays, of which the language does not tell where they end; use "
                "std::array");
  if constexpr (count == 1) {
    auto& [a] = t;
    return std::tie(a);
  } else if constexpr (count == 2) {
    auto& [a, b] = t;
    return std::tie(a, b);
  } else if constexpr (count == 3) {
    auto& [a, b, c] = t;
    return std::tie(a, b, c);
  } else if constexpr (count == 4) {
    auto& [a, b, c, d] = t;
    return std::tie(a, b, c, d);
  } else if constexpr (count == 5) {
    auto& [a, b, c, d, e] = t;
    return std::tie(a, b, c, d, e);
  } else if constexpr (count == 6) {
    auto& [a, b, c, d, e, f] = t;
    return std::tie(a, b, c, d, e, f);
  } else if constexpr (count == 7) {
    auto& [a, b, c, d, e, f, g] = t;
    return std::tie(a, b, c, d, e, f, g);
  } else if constexpr (count == 8) {
    auto& [a, b, c, d, e, f, g, h] = t;
    return std::tie(a, b, c, d, e, f, g, h);
  } else if constexpr (count == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = t;
    return std::tie(a, b, c, d, e, f, g, h, i);
  } else if constexpr (count == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = t;
    return std::tie(a, b, c, d, e, f, g, h, i, j);
  } else if constexpr (count == 11) {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = t;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k);
  } else if constexpr (count == 12) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l] = t;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l);
  } else if constexpr (count == 13) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = t;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m);
  } else if constexpr (count == 14) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = t;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n);
  } else if constexpr (count == 15) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o] = t;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o);
  } else if constexpr (count == 16) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = t;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p);
  }
}

/// The types of an aggregate's members, as `std::tuple<Member&...>`.
template <Aggregate T>
using MembersOf = decltype(members(std::declval<T&>()));

}  // namespace lockstep::inline LOCKSTEP_ABI::data
