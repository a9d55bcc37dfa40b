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

inline constexpr std::size_t most_members = 32;

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

/// The number of members of an aggregate; 33 stands for "more than 32".
template <Aggregate T>
inline constexpr std::size_t member_count = detail::count_members<std::remove_const_t<T>>();

/// References to the members of an aggregate, in order of declaration, constant when the aggregate is.
template <class T>
requires Aggregate<std::remove_const_t<T>>
constexpr auto members(T& all) noexcept {
  constexpr auto count = member_count<std::remove_const_t<T>>;
  static_assert(
      count >= 1 && count <= detail::most_members,
      "Lockstep: a sample is an aggregate of 1 to 32 members; group members in a nested struct, or in a std::array");
  static_assert(
      !detail::has_base<std::remove_const_t<T>>(),
      "Lockstep: a sample has no base class, whose members the language does not list with its own; make it a "
      "member");
  static_assert(detail::takes_members_one_by_one<std::remove_const_t<T>>(std::make_index_sequence<count>{}),
                "Lockstep: a sample holds no C arrays, of which the language does not tell where they end; use "
                "std::array");
  if constexpr (count == 1) {
    auto& [a] = all;
    return std::tie(a);
  } else if constexpr (count == 2) {
    auto& [a, b] = all;
    return std::tie(a, b);
  } else if constexpr (count == 3) {
    auto& [a, b, c] = all;
    return std::tie(a, b, c);
  } else if constexpr (count == 4) {
    auto& [a, b, c, d] = all;
    return std::tie(a, b, c, d);
  } else if constexpr (count == 5) {
    auto& [a, b, c, d, e] = all;
    return std::tie(a, b, c, d, e);
  } else if constexpr (count == 6) {
    auto& [a, b, c, d, e, f] = all;
    return std::tie(a, b, c, d, e, f);
  } else if constexpr (count == 7) {
    auto& [a, b, c, d, e, f, g] = all;
    return std::tie(a, b, c, d, e, f, g);
  } else if constexpr (count == 8) {
    auto& [a, b, c, d, e, f, g, h] = all;
    return std::tie(a, b, c, d, e, f, g, h);
  } else if constexpr (count == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = all;
    return std::tie(a, b, c, d, e, f, g, h, i);
  } else if constexpr (count == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = all;
    return std::tie(a, b, c, d, e, f, g, h, i, j);
  } else if constexpr (count == 11) {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = all;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k);
  } else if constexpr (count == 12) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l] = all;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l);
  } else if constexpr (count == 13) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = all;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m);
  } else if constexpr (count == 14) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = all;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n);
  } else if constexpr (count == 15) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o] = all;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o);
  } else if constexpr (count == 16) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = all;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p);
  } else if constexpr (count == 17) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q] = all;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q);
  } else if constexpr (count == 18) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r] = all;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r);
  } else if constexpr (count == 19) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s] = all;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s);
  } else if constexpr (count == 20) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t] = all;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t);
  } else if constexpr (count == 21) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u] = all;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u);
  } else if constexpr (count == 22) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v] = all;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v);
  } else if constexpr (count == 23) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w] = all;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w);
  } else if constexpr (count == 24) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x] = all;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x);
  } else if constexpr (count == 25) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y] = all;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y);
  } else if constexpr (count == 26) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z] = all;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z);
  } else if constexpr (count == 27) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2] = all;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2);
  } else if constexpr (count == 28) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2, b2] = all;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2, b2);
  } else if constexpr (count == 29) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2, b2, c2] = all;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2, b2, c2);
  } else if constexpr (count == 30) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2, b2, c2, d2] = all;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2, b2, c2, d2);
  } else if constexpr (count == 31) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2, b2, c2, d2, e2] = all;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2, b2, c2, d2, e2);
  } else if constexpr (count == 32) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2, b2, c2, d2, e2, f2] = all;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2, b2, c2, d2, e2,
                    f2);
  }
}

/// The types of an aggregate's members, as `std::tuple<Member&...>`.
template <Aggregate T>
using MembersOf = decltype(members(std::declval<T&>()));

}  // namespace lockstep::inline LOCKSTEP_ABI::data
