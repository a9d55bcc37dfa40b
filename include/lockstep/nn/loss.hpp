// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/tensor_view.hpp>
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

  /// Adds up what a kernel found for the parts of a batch, in order.
  /// @shape sums, weights [parts]
  template <class Context>
  [[nodiscard]] static Loss of(Context const&, TensorView<double const, 1, HostSpace> sums,
                               TensorView<double const, 1, HostSpace> weights) noexcept {
    Loss loss;
    for (Index part = 0; part < sums.size(); ++part) loss += {sums.data[part], weights.data[part]};
    return loss;
  }

  /// The loss of another part of the batch.
  Loss& operator+=(Loss const& other) noexcept {
    sum += other.sum;
    weight += other.weight;
    return *this;
  }
  /// This loss and an auxiliary one on the same batch: the sums are added, and this one's weight serves both. Give the
  /// auxiliary loss its factor where it is computed, so that its gradient has it too.
  [[nodiscard]] Loss with_auxiliary(Loss const& other) const noexcept { return {sum + other.sum, weight}; }
  [[nodiscard]] double mean() const noexcept { return weight == 0 ? 0 : sum / weight; }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
