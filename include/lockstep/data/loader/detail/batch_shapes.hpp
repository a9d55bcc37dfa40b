// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <string>
#include <tuple>
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/data/aggregate.hpp>
#include <lockstep/data/collate/collate.hpp>
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/detail/forwarding.hpp>
#include <lockstep/data/loader/detail/loader_slot.hpp>
#include <lockstep/data/sample_extent.hpp>
#include <lockstep/data/split.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// A shape of batches, and the number of batches that have it.
template <class Sample>
struct BatchShape {
  Index rows = 0;
  SampleExtent<Sample> longest{};  ///< largest lengths in one of the batches, before they are padded
  SampleExtent<Sample> padded{};   ///< lengths of the batches' rows
  Index batches = 0;
};

namespace detail {

/// Returns whether a member is a string. Strings are concatenated, so that batches of them rarely have equal shapes.
template <class Value>
consteval bool has_strings();
template <class... Member>
consteval bool has_strings_of(std::tuple<Member&...>*) {
  return (false || ... || has_strings<Member>());
}
template <class Value>
consteval bool has_strings() {
  if constexpr (std::same_as<Value, std::string>) {
    return true;
  } else if constexpr (Aggregate<Value>) {
    return has_strings_of(static_cast<MembersOf<Value>*>(nullptr));
  } else {
    return false;
  }
}

/// Data that know the lengths of samples without reading them, or whose samples are in memory.
template <class Source, class CollateType>
concept KnowsLengths = SampleExtent<SampleOf<Source>>::count == 0 || LoaderShard<Source, CollateType>::is_in_memory ||
                       KnowsExtents<Source>;

/// Data and a collate whose batches have shapes that are known before a sample is read.
template <class Source, class CollateType>
concept KnowsShapes =
    !SequentialAccess<Source> && requires(CollateType const& collate, SampleExtent<SampleOf<Source>> const& lengths) {
  { collate.padded(lengths) } -> std::same_as<SampleExtent<SampleOf<Source>>>;
}
&&!has_strings<SampleOf<Source>>() && KnowsLengths<Source, CollateType>;

/// Counts the shapes of batches.
template <class Source, class CollateType>
class ShapeCounter {
  using Sample = SampleOf<Source>;

 public:
  ShapeCounter(Source const& dataset, CollateType const& collate) : dataset_(dataset), collate_(collate) {}

  /// Adds the batches of a micro-step. `index_at` maps the `size` positions of its epoch's order to samples.
  template <class Layout, class IndexAt>
  void add(Layout const& layout, Index step, Split const& split, Index size, IndexAt& index_at) {
    for (int shard = split.first; shard < split.first + split.count; ++shard) {
      BatchShape<Sample> shape{.rows = layout.rows(step, shard), .batches = 1};
      for (Index row = 0; SampleExtent<Sample>::count > 0 && row < shape.rows; ++row)
        extend(shape, index_at(layout.position(step, shard, row) % size));
      shape.padded = collate_.padded(shape.longest);
      auto const same = std::find_if(shapes_.begin(), shapes_.end(), [&](auto const& other) {
        return other.rows == shape.rows && other.padded == shape.padded;
      });
      samples_ += shape.rows;
      if (same == shapes_.end())
        shapes_.push_back(shape);
      else
        ++same->batches;
    }
  }
  /// Returns the number of samples so far.
  [[nodiscard]] Index samples() const noexcept { return samples_; }
  [[nodiscard]] std::vector<BatchShape<Sample>> const& shapes() const noexcept { return shapes_; }

 private:
  void extend(BatchShape<Sample>& shape, Index i) const {
    if (i < 0 || i >= dataset_.size()) return;  // the loader reports it
    auto const lengths = [&] {
      if constexpr (LoaderShard<Source, CollateType>::is_in_memory)
        return extent_of(dataset_.get(i));
      else if constexpr (SampleExtent<Sample>::count > 0)
        return dataset_.extent(i);
      else
        return SampleExtent<Sample>{};
    }();
    auto& longest = shape.longest.lengths;
    std::transform(longest.begin(), longest.end(), lengths.lengths.begin(), longest.begin(),
                   [](auto a, auto b) { return std::max(a, b); });
  }

  Source const& dataset_;
  CollateType const& collate_;
  Index samples_ = 0;
  std::vector<BatchShape<Sample>> shapes_;
};

}  // namespace detail
}}}  // namespace lockstep::data
