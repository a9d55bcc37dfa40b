// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string_view>
#include <vector>

#include <lockstep/core/mix.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// Finds names in a list that the caller holds. A hash table with at least twice as many slots as names, or the list
/// itself if it is short. (std::unordered_set would cost every compilation 11 MB.) `name_of(i)` must return name i of
/// the list, from 0.
/// @cost constant time for each call, on average
class NameTable {
 public:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);  ///< result for an unknown name

  /// Adds the list's next name, unless the table contains it.   @returns the index of the equal earlier name, or `none`
  template <class NameOf>
  std::size_t add(NameOf const& name_of) {
    auto const same = find(name_of(count_), name_of);
    if (same != none) return same;
    ++count_;
    if (2 * count_ > places_.size() && count_ > few) {
      places_.assign(4 * places_.size() + 4 * few, 0);
      for (std::size_t i = 0; i + 1 < count_; ++i) put(i, name_of);
    }
    if (!places_.empty()) put(count_ - 1, name_of);
    return none;
  }
  /// Returns the index of the name among the added ones, or `none`.
  template <class NameOf>
  [[nodiscard]] std::size_t find(std::string_view name, NameOf const& name_of) const {
    if (places_.empty()) {
      std::size_t i = 0;
      while (i < count_ && name_of(i) != name) ++i;
      return i < count_ ? i : none;
    }
    for (auto place = first(name); places_[place] != 0; place = next(place))
      if (name_of(places_[place] - 1) == name) return places_[place] - 1;
    return none;
  }

 private:
  static constexpr std::size_t few = 16;

  template <class NameOf>
  void put(std::size_t i, NameOf const& name_of) {
    auto place = first(name_of(i));
    while (places_[place] != 0) place = next(place);
    places_[place] = i + 1;
  }
  [[nodiscard]] std::size_t first(std::string_view name) const noexcept { return mix(name) % places_.size(); }
  [[nodiscard]] std::size_t next(std::size_t place) const noexcept {
    return place + 1 == places_.size() ? 0 : place + 1;
  }

  std::size_t count_ = 0;
  std::vector<std::size_t> places_;  // index of the slot's name plus 1; empty for short lists
};

}}  // namespace lockstep
