// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/detail/dataset_list.hpp>
#include <lockstep/data/detail/forwarding.hpp>
#include <lockstep/data/row.hpp>
#include <lockstep/data/sample_extent.hpp>
#include <lockstep/data/sample_key.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Concatenates datasets of one sample type: `Concat{a, b, c}` of types that may differ, or `Concat{shards}` of a
/// std::vector of any number of one type. Offers references, extents, rows read in place and groups if all its datasets
/// offer them. Has readers for the loader's workers if one dataset has them. Datasets that draw samples get the
/// loader's key. Copies share the datasets.
/// @throws ConfigError if the vector is empty
template <class First, class... Rest>
class Concat {
  using List = detail::DatasetList<First, Rest...>;
  static_assert(List::all_datasets,
                "Lockstep: Concat is made of datasets, or of one std::vector of datasets of one type");
  static_assert(List::same_sample_type,
                "Lockstep: the datasets of Concat have samples of different types; convert them with data::Transform");
  static_assert(List::random_access,
                "Lockstep: Concat finds samples by number, but a stream (Streamed) yields samples in order; give "
                "the stream one more lane for each part");
  using Datasets = typename List::Datasets;
  using Returned = typename List::Returned;
  struct Shared;

 public:
  using Sample = std::remove_cvref_t<Returned>;  ///< type of a sample

  /// Takes datasets with samples of one type, in order.
  explicit Concat(First first, Rest... rest) : shared_(share(Datasets(std::move(first), std::move(rest)...))) {}

  /// Returns the sum of the datasets' sizes.
  [[nodiscard]] Index size() const noexcept { return shared_->ends.back(); }
  /// Returns sample i of [0, size()), from the dataset that has it.
  [[nodiscard]] Returned get(Index i) const {
    return visit<Returned>(i, [](auto const& dataset, Index k) -> Returned { return dataset.get(k); });
  }
  /// Returns sample i with the key's random numbers.
  [[nodiscard]] Returned get(Index i, SampleKey const& key) const requires(List::any_draws) {
    return visit<Returned>(
        i, [&](auto const& dataset, Index k) -> Returned { return detail::get_with_key(dataset, k, key); });
  }
  /// Returns the lengths of sample i without reading it.
  [[nodiscard]] SampleExtent<Sample> extent(Index i) const requires(List::all_read_in_place) {
    return visit<SampleExtent<Sample>>(i, [](auto const& dataset, Index k) { return dataset.extent(k); });
  }
  /// Reads sample i into its row of a batch.
  void read_into(Index i, Row<Sample> row) const requires(List::all_read_in_place) {
    visit<void>(i, [&](auto const& dataset, Index k) { dataset.read_into(k, row); });
  }
  /// Reads with a reader of each dataset.
  class Worker {
   public:
    /// As the dataset's `get`.
    [[nodiscard]] Returned get(Index i) {
      return visit<Returned>(i, [](auto& dataset, Index k) -> Returned { return dataset.get(k); });
    }
    /// As the dataset's `get` with a key.
    [[nodiscard]] Returned get(Index i, SampleKey const& key) requires(List::any_draws) {
      return visit<Returned>(i, [&](auto& dataset, Index k) -> Returned { return dataset.get(k, key); });
    }
    /// As the dataset's `extent`.
    [[nodiscard]] SampleExtent<Sample> extent(Index i) requires(List::all_read_in_place) {
      return visit<SampleExtent<Sample>>(i, [](auto& dataset, Index k) { return dataset.extent(k); });
    }
    /// As the dataset's `read_into`.
    void read_into(Index i, Row<Sample> row) requires(List::all_read_in_place) {
      visit<void>(i, [&](auto& dataset, Index k) { dataset.read_into(k, row); });
    }

   private:
    friend Concat;
    explicit Worker(Concat const& concat) : shared_(concat.shared_), readers_(detail::readers_of(shared_->datasets)) {}
    template <class Result, class Function>
    Result visit(Index i, Function&& f) {
      auto const number = shared_->dataset_of(i);
      return detail::with_dataset<Result>(readers_, number,
                                          [&](auto& each) -> Result { return f(each, i - shared_->begin(number)); });
    }

    std::shared_ptr<Shared const> shared_;
    typename List::Readers readers_;
  };
  /// Returns a reader for one worker.
  [[nodiscard]] Worker worker() const requires(List::any_has_workers) { return Worker(*this); }
  /// Returns the sample's name in its dataset, or its number there.
  [[nodiscard]] std::string name(Index i) const {
    auto const number = shared_->dataset_of(i);
    return visit<std::string>(i,
                              [&](auto const& dataset, Index k) { return detail::sample_name_in(dataset, k, number); });
  }
  /// Returns a hash of the datasets' sizes and fingerprints, in order.
  [[nodiscard]] std::uint64_t fingerprint() const {
    std::uint64_t hash = 0;
    bool first = true;
    detail::for_each_dataset(shared_->datasets, [&](auto const& dataset) {
      hash = (std::exchange(first, false) ? 0 : mix(hash)) ^ detail::size_and_fingerprint(dataset);
    });
    return mix(hash, 0);
  }

  /// Returns the number of groups of all datasets.
  [[nodiscard]] Index groups() const requires(List::all_grouped) { return shared_->groups.back(); }
  /// Returns the group of sample i in [0, groups()).
  [[nodiscard]] Index group(Index i) const requires(List::all_grouped) {
    return shared_->groups[shared_->dataset_of(i)] +
           visit<Index>(i, [](auto const& each, Index k) -> Index { return each.group(k); });
  }

 private:
  struct Shared {
    Datasets datasets;
    std::vector<Index> ends{};     // end of each dataset
    std::vector<Index> groups{0};  // number of groups before each dataset, then of all

    [[nodiscard]] std::size_t dataset_of(Index i) const noexcept {
      return static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end() - 1, i) - ends.begin());
    }
    [[nodiscard]] Index begin(std::size_t number) const noexcept { return number == 0 ? 0 : ends[number - 1]; }
  };
  static std::shared_ptr<Shared const> share(Datasets datasets) {
    auto out = std::make_shared<Shared>(Shared{std::move(datasets)});
    Index end = 0;
    detail::for_each_dataset(out->datasets, [&](auto const& dataset) {
      out->ends.push_back(end += static_cast<Index>(dataset.size()));
      if constexpr (List::all_grouped) out->groups.push_back(out->groups.back() + static_cast<Index>(dataset.groups()));
    });
    if (out->ends.empty()) throw ConfigError("Concat: the vector of datasets is empty; give at least one");
    return out;
  }
  template <class Result, class Function>
  Result visit(Index i, Function&& f) const {
    auto const number = shared_->dataset_of(i);
    return detail::with_dataset<Result>(
        shared_->datasets, number, [&](auto const& each) -> Result { return f(each, i - shared_->begin(number)); });
  }

  std::shared_ptr<Shared const> shared_;
};

}}}  // namespace lockstep::data
