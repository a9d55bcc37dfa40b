// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/data/aggregate.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {
namespace detail {

template <class Value>
inline constexpr bool variable_length = false;
template <class Value>
inline constexpr bool variable_length<std::vector<Value>> = true;
template <>
inline constexpr bool variable_length<std::string> = true;

template <class Value>
consteval std::size_t count_lengths();
template <class... Member>
consteval std::size_t count_lengths_of(std::tuple<Member&...>*) {
  return (std::size_t{0} + ... + count_lengths<Member>());
}
template <class Value>
consteval std::size_t count_lengths() {
  if constexpr (variable_length<Value>) {
    return 1;
  } else if constexpr (Aggregate<Value>) {
    return count_lengths_of(static_cast<MembersOf<Value>*>(nullptr));
  } else {
    return 0;
  }
}

template <class Value>
constexpr void mark_strings(bool*& out);

template <class... Member>
constexpr void mark_strings_of(std::tuple<Member&...>*, bool*& out) {
  (mark_strings<Member>(out), ...);
}

template <class Value>
constexpr void mark_strings(bool*& out) {
  if constexpr (variable_length<Value>) {
    *out++ = std::is_same_v<Value, std::string>;
  } else if constexpr (Aggregate<Value>) {
    mark_strings_of(static_cast<MembersOf<Value>*>(nullptr), out);
  }
}

/// Whether each length of a sample's extent is the length of a string.
template <class Sample>
inline constexpr auto is_string_length = [] {
  std::array<bool, count_lengths<Sample>()> out{};
  auto* next = out.data();
  mark_strings<Sample>(next);
  return out;
}();

template <class Value>
void measure(Value const& member, Index*& out) noexcept {
  if constexpr (variable_length<Value>) {
    *out++ = static_cast<Index>(member.size());
  } else if constexpr (Aggregate<Value>) {
    std::apply([&](auto const&... each) { (measure(each, out), ...); }, members(member));
  }
}

}  // namespace detail

/// The sizes that the layout of a batch depends on: the length of each variable-length member (std::vector,
/// std::string). In order of declaration, nested aggregates in place. A dataset that knows it without reading the
/// sample offers `extent(i)`.
template <class Sample>
struct SampleExtent {
  static constexpr std::size_t count = detail::count_lengths<Sample>();  ///< vectors and strings of a sample
  std::array<Index, count> lengths{};                                    ///< elements of each

  /// Compares all lengths.
  friend bool operator==(SampleExtent const&, SampleExtent const&) = default;
};

/// Returns the extent of a sample.
template <class Sample>
[[nodiscard]] SampleExtent<Sample> extent_of(Sample const& sample) noexcept {
  SampleExtent<Sample> extent;
  [[maybe_unused]] auto* out = extent.lengths.data();
  detail::measure(sample, out);
  return extent;
}

}}}  // namespace lockstep::data
