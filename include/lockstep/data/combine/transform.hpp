// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <lockstep/data/dataset.hpp>
#include <lockstep/data/detail/part.hpp>
#include <lockstep/data/detail/sample_reader.hpp>
#include <lockstep/data/sample_key.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Applies a function to a dataset's samples: get(i) = function(dataset.get(i)), computed on each call. InMemoryDataset
/// keeps the results. Several threads call the function at once. A function that also takes a SampleKey can draw from
/// it, for augmentation. Without a loader, it gets the key of epoch 0 and position i.
template <Dataset D, class F>
class Transform {
  using Input = decltype(std::declval<D const&>().get(Index{}));
  static constexpr bool draws = std::is_invocable_v<F const&, Input, SampleKey const&>;
  static_assert(
      draws || std::is_invocable_v<F const&, Input>,
      "Lockstep: the function of Transform cannot be called, as const, with a sample of the dataset: it takes one "
      "by value or const&, optionally a data::SampleKey const& to draw random numbers from, and returns the "
      "transformed sample");

 public:
  Transform(D dataset, F function) : dataset_(std::move(dataset)), function_(std::move(function)) {}

  [[nodiscard]] Index size() const { return dataset_.size(); }
  [[nodiscard]] decltype(auto) get(Index i) const {
    if constexpr (draws) {
      return get(i, {0, 0, i});
    } else {
      return function_(dataset_.get(i));
    }
  }
  [[nodiscard]] decltype(auto) get(Index i, SampleKey const& key) const requires(draws || DrawsSamples<D>) {
    if constexpr (draws) {
      return function_(detail::get_of_part(dataset_, i, key), key);
    } else {
      return function_(detail::get_of_part(dataset_, i, key));
    }
  }
  /// Returns the next sample of a stream's lane, as Streamed::take.
  [[nodiscard]] auto take(SampleKey const& key) const requires detail::ReadsForward<D> {
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
  void rewind(Index epoch, Index position) const requires detail::ReadsForward<D> { dataset_.rewind(epoch, position); }
  [[nodiscard]] Index lanes() const requires detail::ReadsForward<D> { return dataset_.lanes(); }
  /// Reads with a reader of the dataset. Valid while the Transform lives.
  class Worker {
   public:
    [[nodiscard]] decltype(auto) get(Index i) {
      if constexpr (draws) {
        return get(i, {0, 0, i});
      } else {
        return of_->function_(reader_.get(i));
      }
    }
    [[nodiscard]] decltype(auto) get(Index i, SampleKey const& key) requires(draws || DrawsSamples<D>) {
      if constexpr (draws) {
        return of_->function_(reader_.get(i, key), key);
      } else {
        return of_->function_(reader_.get(i, key));
      }
    }

   private:
    friend Transform;
    explicit Worker(Transform const& of) : reader_(of.dataset_), of_(&of) {}

    detail::SampleReader<D> reader_;
    Transform const* of_;
  };
  [[nodiscard]] Worker worker() const requires HasWorkers<D> { return Worker(*this); }
  [[nodiscard]] std::string name(Index i) const requires NamesSamples<D> { return dataset_.name(i); }
  [[nodiscard]] std::uint64_t fingerprint() const requires HasFingerprint<D> { return dataset_.fingerprint(); }
  [[nodiscard]] Index groups() const requires GroupedDataset<D> { return dataset_.groups(); }
  [[nodiscard]] Index group(Index i) const requires GroupedDataset<D> { return dataset_.group(i); }

 private:
  D dataset_;
  F function_;
};

}}}  // namespace lockstep::data
