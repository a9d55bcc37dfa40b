// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <lockstep/data/dataset.hpp>
#include <lockstep/data/detail/forwarding.hpp>
#include <lockstep/data/detail/sample_reader.hpp>
#include <lockstep/data/sample_extent.hpp>
#include <lockstep/data/sample_key.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Applies a function to a dataset's samples: get(i) = function(dataset.get(i)), computed on each call. InMemoryDataset
/// keeps the results. Several threads call the function at once. A function that also takes a SampleKey can draw from
/// it, for augmentation. Without a loader, it gets the key of epoch 0 and position i.
///
/// A function object may have `extent(SampleExtent of the sample)`, which returns the extent of its result, for all
/// keys. Passes of a GPU can then be recorded before the first step, if the dataset knows its extents.
template <Dataset Source, class Function>
class Transform : public detail::DatasetAdapter<Source> {
  using Adapter = detail::DatasetAdapter<Source>;
  using Input = decltype(std::declval<Source const&>().get(Index{}));
  static constexpr bool draws = std::is_invocable_v<Function const&, Input, SampleKey const&>;
  static constexpr bool callable = draws || std::is_invocable_v<Function const&, Input>;
  static_assert(
      callable,
      "Lockstep: the function of Transform cannot be called, as const, with a sample of the dataset: it takes one "
      "by value or const&, optionally a data::SampleKey const& to draw random numbers from, and returns the "
      "transformed sample");
  static constexpr bool knows_extents = detail::KnowsExtents<Source> && requires(Function const& function) {
    function.extent(SampleExtent<SampleOf<Source>>());
  };

 public:
  using Worker = detail::AdapterWorker<Transform, Source>;  ///< reader of one worker

  /// @param function called as const by several threads at once
  Transform(Source dataset, Function function) : Adapter(std::move(dataset)), function_(std::move(function)) {}

  /// Returns the transformed sample i. If the function draws, it gets a key of epoch 0 and position i.
  [[nodiscard]] decltype(auto) get(Index i) const { return read(dataset_, i); }
  /// Returns the transformed sample i with the key's random numbers.
  [[nodiscard]] decltype(auto) get(Index i, SampleKey const& key) const requires(draws || DrawsSamples<Source>) {
    return read(dataset_, i, key);
  }
  /// Returns the extent of a transformed sample.
  [[nodiscard]] auto extent(Index i) const requires knows_extents { return function_.extent(dataset_.extent(i)); }
  /// Returns the next sample of a stream's lane, as Streamed::take.
  [[nodiscard]] auto take(SampleKey const& key) const requires detail::SequentialAccess<Source> {
    std::optional<std::remove_cvref_t<decltype(get(Index{}))>> out;
    if (auto sample = dataset_.take(key)) {
      if constexpr (draws) {
        out = function_(std::move(*sample), key);
      } else {
        out = function_(std::move(*sample));
      }
    }
    return out;
  }
  /// Returns a reader for one worker. Valid while this dataset lives.
  [[nodiscard]] Worker worker() const requires HasWorkers<Source> { return Worker(*this, dataset_); }

 private:
  friend Worker;
  using Adapter::dataset_;

  template <class Reader>
  [[nodiscard]] decltype(auto) read(Reader& reader, Index i) const {
    if constexpr (draws) {
      return read(reader, i, {0, 0, i});
    } else if constexpr (callable) {
      return function_(reader.get(i));
    } else {
      return reader.get(i);
    }
  }
  template <class Reader>
  [[nodiscard]] decltype(auto) read(Reader& reader, Index i, SampleKey const& key) const {
    if constexpr (draws) {
      return function_(detail::get_with_key(reader, i, key), key);
    } else if constexpr (callable) {
      return function_(detail::get_with_key(reader, i, key));
    } else {
      return detail::get_with_key(reader, i, key);
    }
  }

  Function function_;
};

}}}  // namespace lockstep::data
