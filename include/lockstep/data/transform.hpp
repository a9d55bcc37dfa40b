// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <type_traits>
#include <utility>

#include <lockstep/data/dataset.hpp>

namespace lockstep::inline LOCKSTEP_ABI::data {

/// A dataset seen through a function: get(i) = function(dataset.get(i)), computed each time; InMemoryDataset keeps the
/// results. The function is called from several threads at once.
template <Dataset D, class F>
class Transform {
  static_assert(std::is_invocable_v<F const&, decltype(std::declval<D const&>().get(Index{}))>,
                "Lockstep: the function of Transform cannot be called, as const, with a sample of the dataset");

 public:
  Transform(D dataset, F function) : dataset_(std::move(dataset)), function_(std::move(function)) {}

  [[nodiscard]] Index size() const { return dataset_.size(); }
  [[nodiscard]] decltype(auto) get(Index i) const { return function_(dataset_.get(i)); }
  [[nodiscard]] Index groups() const requires GroupedDataset<D> { return dataset_.groups(); }
  [[nodiscard]] Index group(Index i) const requires GroupedDataset<D> { return dataset_.group(i); }

 private:
  D dataset_;
  F function_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::data
