// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/data/dataset.hpp>
#include <lockstep/data/detail/expect_optional_members.hpp>
#include <lockstep/data/detail/forwarding.hpp>
#include <lockstep/data/detail/sample_reader.hpp>

// Several datasets of one sample type: datasets of different types in a tuple, or any number of one type in a vector.
namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

template <class Source>
using ReturnTypeOf = decltype(std::declval<Source const&>().get(Index{}));

template <class First, class... Rest>
struct DatasetList {
  static_assert(expect_optional_members<First>() && (expect_optional_members<Rest>() && ...));

  using Datasets = std::tuple<First, Rest...>;
  using Readers = std::tuple<SampleReader<First>, SampleReader<Rest>...>;
  static constexpr bool all_datasets = Dataset<First> && (Dataset<Rest> && ...);
  static constexpr bool same_sample_type = (std::same_as<SampleOf<First>, SampleOf<Rest>> && ...);
  static constexpr bool random_access = RandomAccess<First> && (RandomAccess<Rest> && ...);
  using Returned = std::conditional_t<(std::same_as<ReturnTypeOf<First>, ReturnTypeOf<Rest>> && ...),
                                      ReturnTypeOf<First>, SampleOf<First>>;
  static constexpr bool all_read_in_place = ReadsInPlace<First> && (ReadsInPlace<Rest> && ...);
  static constexpr bool any_draws = DrawsSamples<First> || (DrawsSamples<Rest> || ...);
  static constexpr bool all_grouped = GroupedDataset<First> && (GroupedDataset<Rest> && ...);
  static constexpr bool any_has_workers = HasWorkers<First> || (HasWorkers<Rest> || ...);
};
template <Dataset Source>
struct DatasetList<std::vector<Source>> : DatasetList<Source> {
  using Datasets = std::vector<Source>;
  using Readers = std::vector<SampleReader<Source>>;
};

/// Calls f with each dataset.
template <class Source, class Function>
void for_each_dataset(std::vector<Source> const& datasets, Function&& f) {
  for (auto const& each : datasets) f(each);
}
template <class... Source, class Function>
void for_each_dataset(std::tuple<Source...> const& datasets, Function&& f) {
  std::apply([&](auto const&... each) { (f(each), ...); }, datasets);
}

/// Returns f(dataset) for the dataset at `place`.
template <class Result, std::size_t Place = 0, class Datasets, class Function>
Result with_dataset(Datasets& datasets, std::size_t place, Function&& f) {
  if constexpr (requires { datasets[place]; }) {
    return f(datasets[place]);
  } else {
    if constexpr (Place + 1 < std::tuple_size_v<std::remove_const_t<Datasets>>)
      if (place != Place) return with_dataset<Result, Place + 1>(datasets, place, std::forward<Function>(f));
    return f(std::get<Place>(datasets));
  }
}

/// Returns a reader of each dataset.
template <class Source>
std::vector<SampleReader<Source>> readers_of(std::vector<Source> const& datasets) {
  return {datasets.begin(), datasets.end()};
}
template <class... Source>
std::tuple<SampleReader<Source>...> readers_of(std::tuple<Source...> const& datasets) {
  return std::apply(
      [](auto const&... each) { return std::tuple<SampleReader<Source>...>(SampleReader<Source>(each)...); }, datasets);
}

}}}  // namespace lockstep::data::detail
