// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/data/sampler/sampler.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Visits every sample in the dataset's order, equal in each epoch: for evaluation.
struct SequentialSampler {
  /// The order of every epoch: sample i at position i.
  class Order {
   public:
    /// @param size number of samples
    explicit Order(Index size) noexcept : size_(size) {}
    /// Returns the number of samples.
    [[nodiscard]] Index size() const noexcept { return size_; }
    /// Returns the identity.
    [[nodiscard]] auto in(Index) const noexcept {
      return [](Index position) noexcept { return position; };
    }

   private:
    Index size_;
  };

  /// Returns the order of the dataset.
  [[nodiscard]] Order over(Dataset auto const& dataset) const { return Order(dataset.size()); }
};

}}}  // namespace lockstep::data
