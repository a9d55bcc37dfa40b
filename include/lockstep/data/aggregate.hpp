// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {
namespace detail {

// Converts to any member type, but never to the aggregate itself: such a conversion would count a copy as one member.
template <class Owner>
struct AnyMember {
  template <class Value>
  requires(!std::same_as<std::remove_cvref_t<Value>, Owner>) operator Value() const {
    __builtin_unreachable();  // only its type is used; without a body clang misses one
  }
};

template <class Value, std::size_t... Indices>
consteval bool takes_members(std::index_sequence<Indices...>) {
  return requires { Value{(static_cast<void>(Indices), AnyMember<Value>{})...}; };
}

// Converts only to the bases of an aggregate.
template <class Owner>
struct AnyBase {
  template <class Value>
  requires(std::is_base_of_v<Value, Owner> && !std::same_as<Value, Owner>) operator Value() const {
    __builtin_unreachable();
  }
};

/// Whether brace initialization counts a base class as the first member.
template <class Value>
consteval bool has_base() {
  return requires { Value{AnyBase<Value>{}}; };
}

/// Whether all counted members are real members, not elements of a C array. Braces may leave out the elements of a C
/// array, parentheses may not. (nvcc defines the macro for initialization in parentheses, but finds no conversions.)
template <class Value, std::size_t... Indices>
consteval bool takes_members_one_by_one([[maybe_unused]] std::index_sequence<Indices...> all) {
#if defined(__cpp_aggregate_paren_init) && !defined(__CUDACC__)
  return requires { Value((static_cast<void>(Indices), AnyMember<Value>{})...); };
#else
  return takes_members<Value>(all);
#endif
}

template <class Value>
inline constexpr bool standard_array = false;
template <class Value, std::size_t Count>
inline constexpr bool standard_array<std::array<Value, Count>> = true;

inline constexpr std::size_t max_members = 32;

/// Returns the largest count that takes_members, by bisection: every smaller count is taken too, because an aggregate
/// that can be initialized by `{}` needs no value for its other members.
/// @param Taken a count that is taken, below NotTaken
template <class Value, std::size_t Taken = 0, std::size_t NotTaken = max_members + 2>
consteval std::size_t count_members() {
  constexpr auto middle = (Taken + NotTaken) / 2;
  if constexpr (middle == Taken) {
    return Taken;
  } else if constexpr (takes_members<Value>(std::make_index_sequence<middle>{})) {
    return count_members<Value, middle, NotTaken>();
  } else {
    return count_members<Value, Taken, middle>();
  }
}

}  // namespace detail

/// A struct whose members Lockstep can list without a macro: a default-constructible aggregate without a base class. It
/// holds no C arrays, because brace initialization counts their elements as members; use std::array.
template <class Value>
concept Aggregate = std::is_aggregate_v<Value> && !std::is_array_v<Value> && !detail::standard_array<Value> &&
                    std::default_initializable<Value>;

/// The number of members of an aggregate; 33 means "more than 32".
template <Aggregate Value>
inline constexpr std::size_t member_count = detail::count_members<std::remove_const_t<Value>>();

namespace detail {

/// Members that can be listed: none if a message explains why not. A class, so that there is one message for constant
/// and other samples.
template <Aggregate Value>
struct ListedMembers {
  static constexpr auto counted = member_count<Value>;
  static constexpr bool is_counted = counted >= 1 && counted <= max_members;
  static constexpr bool has_no_base = !has_base<Value>();
  static constexpr bool has_no_c_array = takes_members_one_by_one<Value>(std::make_index_sequence<counted>{});
  static_assert(
      is_counted,
      "Lockstep: a sample is an aggregate of 1 to 32 members; group members in a nested struct, or in a std::array");
  static_assert(has_no_base,
                "Lockstep: a sample has no base class, whose members the language does not list; make it a "
                "member");
  static_assert(has_no_c_array,
                "Lockstep: a sample holds no C arrays, whose length the language does not report; use "
                "std::array");
  static constexpr std::size_t count = is_counted && has_no_base && has_no_c_array ? counted : 0;
};

}  // namespace detail

/// Returns references to the members of an aggregate, in order of declaration; constant if the aggregate is.
template <class Value>
requires Aggregate<std::remove_const_t<Value>>
constexpr auto members(Value& all) noexcept {
  constexpr auto count = detail::ListedMembers<std::remove_const_t<Value>>::count;
  if constexpr (count == 0) return std::tie();  // so that the message is the only error
// A structured binding has to name all members.
#define LOCKSTEP_TIE(number, ...)  \
  if constexpr (count == number) { \
    auto& [__VA_ARGS__] = all;     \
    return std::tie(__VA_ARGS__);  \
  }
  LOCKSTEP_TIE(1, a)
  LOCKSTEP_TIE(2, a, b)
  LOCKSTEP_TIE(3, a, b, c)
  LOCKSTEP_TIE(4, a, b, c, d)
  LOCKSTEP_TIE(5, a, b, c, d, e)
  LOCKSTEP_TIE(6, a, b, c, d, e, f)
  LOCKSTEP_TIE(7, a, b, c, d, e, f, g)
  LOCKSTEP_TIE(8, a, b, c, d, e, f, g, h)
  LOCKSTEP_TIE(9, a, b, c, d, e, f, g, h, i)
  LOCKSTEP_TIE(10, a, b, c, d, e, f, g, h, i, j)
  LOCKSTEP_TIE(11, a, b, c, d, e, f, g, h, i, j, k)
  LOCKSTEP_TIE(12, a, b, c, d, e, f, g, h, i, j, k, l)
  LOCKSTEP_TIE(13, a, b, c, d, e, f, g, h, i, j, k, l, m)
  LOCKSTEP_TIE(14, a, b, c, d, e, f, g, h, i, j, k, l, m, n)
  LOCKSTEP_TIE(15, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o)
  LOCKSTEP_TIE(16, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)
  LOCKSTEP_TIE(17, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q)
  LOCKSTEP_TIE(18, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r)
  LOCKSTEP_TIE(19, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s)
  LOCKSTEP_TIE(20, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t)
  LOCKSTEP_TIE(21, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u)
  LOCKSTEP_TIE(22, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v)
  LOCKSTEP_TIE(23, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w)
  LOCKSTEP_TIE(24, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x)
  LOCKSTEP_TIE(25, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y)
  LOCKSTEP_TIE(26, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z)
  LOCKSTEP_TIE(27, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2)
  LOCKSTEP_TIE(28, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2, b2)
  LOCKSTEP_TIE(29, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2, b2, c2)
  LOCKSTEP_TIE(30, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2, b2, c2, d2)
  LOCKSTEP_TIE(31, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2, b2, c2, d2, e2)
  LOCKSTEP_TIE(32, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2, b2, c2, d2, e2, f2)
#undef LOCKSTEP_TIE
}

/// Types of an aggregate's members, as `std::tuple<Member&...>`.
template <Aggregate Value>
using MembersOf = decltype(members(std::declval<Value&>()));

}}}  // namespace lockstep::data
