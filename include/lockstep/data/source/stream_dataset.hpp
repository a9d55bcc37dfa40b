// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <type_traits>
#include <utility>

#include <lockstep/core/index.hpp>

namespace lockstep::inline LOCKSTEP_ABI::data {

/// Samples that come one after the other, nobody knows how many: lines of pipes, files too large to be indexed, what a
/// simulation makes. `lane(k, epoch)` opens one of `lanes()` parts anew; its `next()` gives a std::optional, without a
/// sample at the end. Lanes are read at the same time, each by one thread at a time. After an exception `next` goes on
/// behind the sample that failed; a lane that cannot go on ends. Streamed makes a dataset for the loader of it.
template <class S>
concept StreamDataset = std::copy_constructible<S> && requires(S const& stream, Index k, Index epoch) {
  { stream.lanes() } -> std::convertible_to<Index>;
  requires std::movable<decltype(stream.lane(k, epoch))>;
  typename std::remove_cvref_t<decltype(*stream.lane(k, epoch).next())>;
  { stream.lane(k, epoch).next().has_value() } -> std::convertible_to<bool>;
};

/// What a lane yields.
template <StreamDataset S>
using SampleOfStream = std::remove_cvref_t<decltype(*std::declval<S const&>().lane(Index{}, Index{}).next())>;

}  // namespace lockstep::inline LOCKSTEP_ABI::data
