// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/detail/forwarding.hpp>
#include <lockstep/data/row.hpp>
#include <lockstep/data/sample_extent.hpp>
#include <lockstep/data/sample_key.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Assigns the samples of a dataset to groups that hold_out and k_fold do not divide, such as the speaker of each
/// recording: `WithGroups{recordings, speakers}`. They replace the groups of the dataset, if it has any. Samples are
/// read as from the dataset. Copies share the groups.
template <Dataset Source>
class WithGroups : public detail::DatasetAdapter<Source> {
  using Adapter = detail::DatasetAdapter<Source>;
  static_assert(
      detail::RandomAccess<Source>,
      "Lockstep: WithGroups assigns samples by number, but a stream (Streamed) yields samples in order; split "
      "the sources of the stream");

 public:
  /// @param keys the group of each sample: numbers or strings. Samples of equal keys are a group. Groups are numbered
  /// from 0 in the order of their keys
  /// @throws ConfigError if keys and samples differ in number
  template <class Key>
  WithGroups(Source dataset, std::vector<Key> const& keys) : Adapter(std::move(dataset)) {
    if (std::ssize(keys) != static_cast<Index>(dataset_.size()))
      throw ConfigError("WithGroups: " + std::to_string(keys.size()) + " groups for " +
                        std::to_string(dataset_.size()) + " samples; give the group of each sample");
    auto names = keys;
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    count_ = std::ssize(names);
    std::vector<Index> groups;
    groups.reserve(keys.size());
    for (auto const& key : keys) groups.push_back(std::lower_bound(names.begin(), names.end(), key) - names.begin());
    groups_ = std::make_shared<std::vector<Index> const>(std::move(groups));
  }

  /// Returns sample i.
  [[nodiscard]] decltype(auto) get(Index i) const { return dataset_.get(i); }
  /// Returns sample i with the key's random numbers.
  [[nodiscard]] decltype(auto) get(Index i, SampleKey const& key) const requires DrawsSamples<Source> {
    return dataset_.get(i, key);
  }
  /// Returns the lengths of sample i without reading it.
  [[nodiscard]] SampleExtent<SampleOf<Source>> extent(Index i) const requires detail::KnowsExtents<Source> {
    return dataset_.extent(i);
  }
  /// Reads sample i into its row of a batch.
  void read_into(Index i, Row<SampleOf<Source>> row) const requires detail::ReadsInPlace<Source> {
    dataset_.read_into(i, row);
  }
  /// Returns the dataset's reader for one worker.
  [[nodiscard]] auto worker() const requires HasWorkers<Source> { return dataset_.worker(); }
  /// Returns the number of different keys.
  [[nodiscard]] Index groups() const noexcept { return count_; }
  /// Returns the group of sample i, in [0, groups()).
  [[nodiscard]] Index group(Index i) const noexcept { return (*groups_)[static_cast<std::size_t>(i)]; }

 private:
  using Adapter::dataset_;
  std::shared_ptr<std::vector<Index> const> groups_;
  Index count_ = 0;
};

}}}  // namespace lockstep::data
