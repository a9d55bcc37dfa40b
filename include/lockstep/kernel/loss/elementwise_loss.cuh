// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <limits>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/detail/rounded_product.cuh>
#include <lockstep/kernel/detail/team.cuh>
#include <lockstep/kernel/loss/detail/device_weights.cuh>
#include <lockstep/kernel/loss/elementwise_loss.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {
namespace detail { inline namespace LOCKSTEP_CUDA_ABI {

/// One block processes one chunk of slots.
template <class Scalar, class Other, class Rule>
LOCKSTEP_CUDA_KERNEL void elementwise_losses(SequenceLayout<CudaSpace> layout, Rule rule, Index width, Index per_chunk,
                                             Accumulate<Scalar> factor, Scalar const* prediction, Other const* target,
                                             double* losses, double* weights, Scalar* gradient, Write write,
                                             float const* factors, bool const* present) {
  using Sum = Accumulate<Scalar>;
  auto const chunk = BlockTeam::first(), end = min(layout.slots, (chunk + 1) * per_chunk) * width;
  double sum = 0, count = 0;
  for (auto i = chunk * per_chunk * width + BlockTeam::member(); i < end; i += BlockTeam::size) {
    if (!layout.is_token(i / width) || (present && !present[i / width])) {
      if (gradient && write == Write::overwrite) gradient[i] = Scalar{0};
      continue;
    }
    auto const x = static_cast<Sum>(prediction[i]);
    LossAt<Sum> at;
    if constexpr (LossOfPrediction<Rule>)
      at = rule(x);
    else if constexpr (LossByColumn<Rule>)
      at = rule(x, static_cast<Sum>(target[i]), static_cast<Sum>(rule.columns.data()[i % width]));
    else
      at = rule(x, static_cast<Sum>(target[i]));
    if constexpr (requires { Rule::targets; })
      if (!rule.takes(static_cast<double>(target[i]))) at.value = at.slope = std::numeric_limits<Sum>::quiet_NaN();
    if (factors) {
      auto const by = static_cast<Sum>(factors[i / width]);
      at.value *= by;
      at.slope *= by;
    }
    sum += static_cast<double>(at.value);
    count += 1;
    if (!gradient) continue;
    Sum const here = rounded_product(factor, at.slope);
    gradient[i] = static_cast<Scalar>(write == Write::add ? static_cast<Sum>(gradient[i]) + here : here);
  }
  sum = BlockTeam::sum(sum);
  count = BlockTeam::sum(count);
  if (BlockTeam::member() > 0) return;
  losses[chunk] = sum * static_cast<double>(factor);
  weights[chunk] = count;
}

}  // namespace LOCKSTEP_CUDA_ABI
}  // namespace detail

/// CUDA version with the host's functions and shapes, queued on the stream. Targets are not checked with an exception,
/// which would have to wait for the device. A target that the rule does not accept makes loss and gradient NaN.
/// @determinism bitwise, run to run and, for one build, on GPUs of one architecture: no atomics, sums in a fixed order
template <>
struct ElementwiseLoss<CudaSpace> : detail::KernelTypes<CudaSpace> {
  [[nodiscard]] static constexpr Index chunks(Index slots, Index width) noexcept {
    return ElementwiseLoss<HostSpace>::chunks(slots, width);
  }

  template <class Scalar, class Other, class Rule>
  static void forward_backward(Stream stream, SequenceLayout<CudaSpace> layout, Rule rule, Accumulate<Scalar> factor,
                               Matrix<Scalar const> prediction, Matrix<Other const> target, Vector<double> losses,
                               Vector<double> weights, Matrix<Scalar> gradient, Write write,
                               Vector<float const> factors = {}, Vector<bool const> present = {}) {
    auto const width = prediction.extent[1];
    if constexpr (LossByColumn<Rule>)
      rule.columns = {stream.persistent<detail::DeviceWeights>().of(rule.columns), rule.columns.size()};
    detail::launch_grid("kernel::ElementwiseLoss", stream, static_cast<unsigned>(chunks(layout.slots, width)),
                        detail::threads_per_block, detail::elementwise_losses<Scalar, Other, Rule>, layout, rule, width,
                        ElementwiseLoss<HostSpace>::slots_per_chunk(width), factor, prediction.data, target.data,
                        losses.data, weights.data, gradient.data, write, factors.data, present.data);
  }
};

}}}  // namespace lockstep::kernel
