// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <iterator>

#include <lockstep/kernel/sequence_layout.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Slots from `begin` up to `end`.
struct SlotRun {
  Index begin, end;
};

/// Returns false if all slots are tokens, as in a matrix, whose layout is the default one.
template <class Space>
[[nodiscard]] constexpr bool has_padding(SequenceLayout<Space> const& layout) noexcept {
  return !layout.is_ragged() && !layout.lengths.empty();
}

/// Returns the first run of tokens among the slots from `begin` up to `end`. Without padding, the run is all of them.
/// It is empty, at `end`, if no token is left.
template <class Space>
[[nodiscard]] constexpr SlotRun next_tokens(SequenceLayout<Space> const& layout, Index begin, Index end) noexcept {
  if (!has_padding(layout)) return {begin, end};
  while (begin < end) {
    auto const row = begin / layout.length, border = std::min(end, layout.start(row) + layout.tokens(row));
    if (begin < border) return {begin, border};
    begin = layout.end(row);
  }
  return {end, end};
}

/// The runs of tokens among the slots from `begin` up to `end`, for loops; a matrix has one. Finds the first run once
/// for all loops. The layout must outlive it.
template <class Space>
class TokensBetween {
 public:
  constexpr TokensBetween(SequenceLayout<Space> const& layout, Index begin, Index end) noexcept
      : layout_(layout), first_(next_tokens(layout, begin, end)), end_(end) {}

  class Iterator {
   public:
    constexpr explicit Iterator(TokensBetween const& all) noexcept : all_(all), run_(all.first_) {}
    [[nodiscard]] constexpr SlotRun operator*() const noexcept { return run_; }
    constexpr void operator++() noexcept {
      run_ = run_.end < all_.end_ ? next_tokens(all_.layout_, run_.end, all_.end_) : SlotRun{all_.end_, all_.end_};
    }
    [[nodiscard]] constexpr bool operator!=(std::default_sentinel_t) const noexcept { return run_.begin < run_.end; }

   private:
    TokensBetween const& all_;
    SlotRun run_;
  };
  [[nodiscard]] constexpr Iterator begin() const noexcept { return Iterator(*this); }
  [[nodiscard]] constexpr std::default_sentinel_t end() const noexcept { return {}; }

  /// Returns the number of tokens.
  [[nodiscard]] constexpr Index count() const noexcept {
    Index all = 0;
    for (auto const run : *this) all += run.end - run.begin;
    return all;
  }

 private:
  SequenceLayout<Space> const& layout_;
  SlotRun first_;
  Index end_;
};

}}}  // namespace lockstep::kernel::detail
