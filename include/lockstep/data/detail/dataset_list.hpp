// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/data/dataset.hpp>
#include <lockstep/data/detail/forwarding.hpp>
#include <lockstep/data/detail/sample_reader.hpp>

// Several datasets of one sample type: datasets of different types in a tuple, or any number of one type in a vector.
namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

template <class D>
using ReturnTypeOf = decltype(std::declval<D const&>().get(Index{}));

template <class First, class... Rest>
struct DatasetList {
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
template <Dataset D>
struct DatasetList<std::vector<D>> : DatasetList<D> {
  using Datasets = std::vector<D>;
  using Readers = std::vector<SampleReader<D>>;
};

/// Calls f with each dataset.
template <class D, class F>
void for_each_dataset(std::vector<D> const& datasets, F&& f) {
  for (auto const& each : datasets) f(each);
}
template <class... D, class F>
void for_each_dataset(std::tuple<D...> const& datasets, F&& f) {
  std::apply([&](auto const&... each) { (f(each), ...); }, datasets);
}

/// Returns f(dataset) for the dataset at `place`.
template <class R, std::size_t Place = 0, class Datasets, class F>
R with_dataset(Datasets& datasets, std::size_t place, F&& f) {
  if constexpr (requires { datasets[place]; }) {
    return f(datasets[place]);
  } else {
    if constexpr (Place + 1 < std::tuple_size_v<std::remove_const_t<Datasets>>)
      if (place != Place) return with_dataset<R, Place + 1>(datasets, place, std::forward<F>(f));
    return f(std::get<Place>(datasets));
  }
}

/// Returns a reader of each dataset.
template <class D>
std::vector<SampleReader<D>> readers_of(std::vector<D> const& datasets) {
  return {datasets.begin(), datasets.end()};
}
template <class... D>
std::tuple<SampleReader<D>...> readers_of(std::tuple<D...> const& datasets) {
  return std::apply([](auto const&... each) { return std::tuple<SampleReader<D>...>(SampleReader<D>(each)...); },
                    datasets);
}

}}}  // namespace lockstep::data::detail
