// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <lockstep/data/dataset.hpp>

namespace lockstep::inline LOCKSTEP_ABI::data {

/// Chosen samples of a dataset: get(i) = dataset.get(indices[i]). Copies share the indices.
template <Dataset D>
class Subset {
 public:
  /// @pre each index lies in [0, dataset.size())
  Subset(D dataset, std::vector<Index> indices)
      : dataset_(std::move(dataset)), indices_(std::make_shared<std::vector<Index> const>(std::move(indices))) {}

  [[nodiscard]] Index size() const noexcept { return static_cast<Index>(indices_->size()); }
  [[nodiscard]] decltype(auto) get(Index i) const { return dataset_.get(original(i)); }
  /// The number that a sample has in the whole dataset.
  [[nodiscard]] Index original(Index i) const noexcept { return (*indices_)[static_cast<std::size_t>(i)]; }
  [[nodiscard]] Index groups() const requires GroupedDataset<D> { return dataset_.groups(); }
  [[nodiscard]] Index group(Index i) const requires GroupedDataset<D> { return dataset_.group(original(i)); }

 private:
  D dataset_;
  std::shared_ptr<std::vector<Index> const> indices_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::data
