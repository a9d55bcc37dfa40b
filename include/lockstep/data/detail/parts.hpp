// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/data/dataset.hpp>
#include <lockstep/data/detail/part.hpp>
#include <lockstep/data/detail/sample_reader.hpp>

// Several datasets of one sample type: datasets of different types in a tuple, or any number of one type in a vector.
namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

template <class D>
using GotFrom = decltype(std::declval<D const&>().get(Index{}));

template <class First, class... Rest>
struct PartsOf {
  using Parts = std::tuple<First, Rest...>;
  using Readers = std::tuple<SampleReader<First>, SampleReader<Rest>...>;
  static constexpr bool datasets = Dataset<First> && (Dataset<Rest> && ...);
  static constexpr bool alike = (std::same_as<SampleOf<First>, SampleOf<Rest>> && ...);
  static constexpr bool anywhere = ReadsAnywhere<First> && (ReadsAnywhere<Rest> && ...);
  using Got = std::conditional_t<(std::same_as<GotFrom<First>, GotFrom<Rest>> && ...), GotFrom<First>, SampleOf<First>>;
  static constexpr bool in_place = ReadsInPlace<First> && (ReadsInPlace<Rest> && ...);
  static constexpr bool draw = DrawsSamples<First> || (DrawsSamples<Rest> || ...);
  static constexpr bool grouped = GroupedDataset<First> && (GroupedDataset<Rest> && ...);
  static constexpr bool have_workers = HasWorkers<First> || (HasWorkers<Rest> || ...);
};
template <Dataset D>
struct PartsOf<std::vector<D>> : PartsOf<D> {
  using Parts = std::vector<D>;
  using Readers = std::vector<SampleReader<D>>;
};

/// Calls f with each part.
template <class D, class F>
void for_each_part(std::vector<D> const& parts, F&& f) {
  for (auto const& each : parts) f(each);
}
template <class... D, class F>
void for_each_part(std::tuple<D...> const& parts, F&& f) {
  std::apply([&](auto const&... each) { (f(each), ...); }, parts);
}

/// Returns f(part) for the part at `place`.
template <class R, std::size_t Place = 0, class Parts, class F>
R with_part(Parts& parts, std::size_t place, F&& f) {
  if constexpr (requires { parts[place]; }) {
    return f(parts[place]);
  } else {
    if constexpr (Place + 1 < std::tuple_size_v<std::remove_const_t<Parts>>)
      if (place != Place) return with_part<R, Place + 1>(parts, place, std::forward<F>(f));
    return f(std::get<Place>(parts));
  }
}

/// Returns a reader of each part.
template <class D>
std::vector<SampleReader<D>> readers_of(std::vector<D> const& parts) {
  return {parts.begin(), parts.end()};
}
template <class... D>
std::tuple<SampleReader<D>...> readers_of(std::tuple<D...> const& parts) {
  return std::apply([](auto const&... each) { return std::tuple<SampleReader<D>...>(SampleReader<D>(each)...); },
                    parts);
}

}}}  // namespace lockstep::data::detail
