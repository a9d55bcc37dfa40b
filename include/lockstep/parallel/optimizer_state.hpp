// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <span>

#include <lockstep/memory/buffer.hpp>
#include <lockstep/nn/loss.hpp>
#include <lockstep/nn/parameter_layout.hpp>
#include <lockstep/optim/global_norm.hpp>
#include <lockstep/optim/optimizer.hpp>

namespace lockstep::inline LOCKSTEP_ABI::parallel {

/// What changes from one optimizer step to the next.
struct UpdateSettings {
  Index step = 1;  ///< from 1
  double learning_rate = 0;
  double clip_norm = 0;  ///< largest norm of the mean gradient; 0 does not clip
};

/// A gradient arena on the host's heap: page-aligned, zeroed.
[[nodiscard]] inline memory::Block gradient_arena(nn::ParameterLayout const& layout) {
  return memory::HostResource{}.allocate(static_cast<std::size_t>(layout.size()) * sizeof(float));
}

/// The moments of an optimizer, in arenas of the parameters' layout.
template <class Optimizer>
class OptimizerState {
 public:
  explicit OptimizerState(nn::ParameterLayout const& layout) {
    for (auto& arena : arenas_) arena = memory::Buffer<float>(layout.size());
  }

  /// Applies one step to all values of a replica, whose gradients are those of the sum `loss`: the optimizer sees them
  /// divided by the loss's weight, and clipped.
  template <class Replica>
  void update(Optimizer const& optimizer, Replica& replica, nn::Loss<HostSpace> const& loss,
              UpdateSettings const& settings) {
    auto const values = replica.values();
    auto const size = static_cast<Index>(values.size());
    optim::StepScalars<HostSpace> scalars;
    scalars.step = static_cast<double>(settings.step);
    scalars.learning_rate = settings.learning_rate;
    scalars.weight = loss.weight;
    if (settings.clip_norm > 0) {
      auto const norm =
          optim::GlobalNorm::of(replica.stream(), TensorView<float, 1, HostSpace>(replica.gradient_data(), {size}));
      scalars.clip = norm.clip(settings.clip_norm, loss.weight);
      scalars.skip = !norm.finite();
    }
    std::array<float*, Optimizer::states> states{};
    for (std::size_t i = 0; i < states.size(); ++i) states[i] = arenas_[i].data();
    optimizer.step(replica.stream(),
                   optim::Slice<float, HostSpace>{0, size, values.data(), replica.gradient_data(), states.data()},
                   &scalars);
  }
  [[nodiscard]] std::size_t bytes() const noexcept {
    std::size_t sum = 0;
    for (auto const& arena : arenas_) sum += static_cast<std::size_t>(arena.size()) * sizeof(float);
    return sum;
  }

 private:
  std::array<memory::Buffer<float>, Optimizer::states> arenas_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::parallel
