// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include <lockstep/core/keyed_permutation.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/data/sampler/sampler.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Visits every sample once per epoch, in a random order determined by the seed and the epoch.
/// @cost constant memory and constant time per position, any length to 2^48
struct ShuffledSampler {
  std::uint64_t seed = 0;  ///< equal seeds and epochs give equal orders

  /// The order of each epoch: a permutation keyed by the seed and the epoch, in O(1) memory.
  class Order {
   public:
    /// @param size number of samples
    Order(Index size, std::uint64_t seed) noexcept : size_(size), seed_(seed) {}
    /// Returns the number of samples.
    [[nodiscard]] Index size() const noexcept { return size_; }
    /// Returns the permutation of one epoch.
    [[nodiscard]] KeyedPermutation in(Index epoch) const { return KeyedPermutation(size_, key(epoch)); }

   private:
    // The string separates this use of the seed from others. The arguments are ordered, so that (seed 0, epoch 1) and
    // (seed 1, epoch 0) differ.
    [[nodiscard]] std::uint64_t key(Index epoch) const noexcept {
      return mix(mix("lockstep.data.shuffled_sampler"), seed_, static_cast<std::uint64_t>(epoch));
    }

    Index size_;
    std::uint64_t seed_;
  };

  /// Returns the order for a dataset.
  [[nodiscard]] Order over(Dataset auto const& dataset) const { return Order(dataset.size(), seed); }
};

}}}  // namespace lockstep::data
