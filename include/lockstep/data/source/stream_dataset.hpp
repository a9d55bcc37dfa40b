// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <type_traits>
#include <utility>

#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Samples in sequence, of unknown number: lines of pipes, files too large to index, output of a simulation. `lane(k,
/// epoch)` opens one of `lanes()` parts from its beginning. Its `next()` returns a std::optional, empty at the end.
/// Lanes are read at the same time, each by one thread at a time. After an exception, `next` continues after the failed
/// sample; a lane that cannot continue ends. Streamed turns a stream into a dataset for the loader.
template <class Stream>
concept StreamDataset = std::copy_constructible<Stream> && requires(Stream const& stream, Index k, Index epoch) {
  { stream.lanes() } -> std::convertible_to<Index>;
  requires std::movable<decltype(stream.lane(k, epoch))>;
  typename std::remove_cvref_t<decltype(*stream.lane(k, epoch).next())>;
  { stream.lane(k, epoch).next().has_value() } -> std::convertible_to<bool>;
};

/// The type of a lane's samples.
template <StreamDataset Stream>
using SampleOfStream = std::remove_cvref_t<decltype(*std::declval<Stream const&>().lane(Index{}, Index{}).next())>;

}}}  // namespace lockstep::data
