// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/memory/space.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

/// A loss is a sum and a weight, never a mean: sums of sums and sums of weights are exact for any split of the batch
/// over micro-batches and ranks. Gradients are those of the sum; the optimizer divides by the weight of the whole step.
template <class Space>
struct Loss;

template <>
struct Loss<HostSpace> {
  double sum = 0;
  double weight = 0;

  Loss& operator+=(Loss const& other) noexcept {
    sum += other.sum;
    weight += other.weight;
    return *this;
  }
  [[nodiscard]] double mean() const noexcept { return weight == 0 ? 0 : sum / weight; }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
