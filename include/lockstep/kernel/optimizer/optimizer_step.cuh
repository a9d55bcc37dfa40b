// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <new>
#include <type_traits>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/detail/vectorized_access.cuh>
#include <lockstep/kernel/optimizer/optimizer_step.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {
namespace detail { inline namespace LOCKSTEP_CUDA_ABI {

/// One thread processes some adjacent elements at a time. The rule is created once per block, because it computes
/// powers.
template <class Scalar, class Shadow, class Scalars, class MakeRule, std::size_t states_count>
LOCKSTEP_CUDA_KERNEL void step_elements(Index count, Scalar* values, Scalar const* gradients,
                                        std::array<Scalar*, states_count> states, Shadow shadow, Scalars const* scalars,
                                        MakeRule make_rule) {
  using Access = WidestAccess<Scalar>;
  using Rule = decltype(make_rule(*scalars));
  static_assert(std::is_trivially_destructible_v<Rule>, "Lockstep: an optimizer's rule holds plain numbers only");
  __shared__ __align__(16) std::byte memory[sizeof(Rule)];
  if (!scalars->active()) return;
  if (threadIdx.x == 0) new (memory) Rule(make_rule(*scalars));
  __syncthreads();
  auto const& rule = *reinterpret_cast<Rule const*>(memory);
  for (auto first = grid_thread() * Access::size; first < count; first += grid_threads() * Access::size) {
    Access const access(first, count);
    typename Access::template Values<Scalar> x, g, of_states[states_count > 0 ? states_count : 1];
    access.load(values, x);
    access.load(gradients, g);
    for (std::size_t s = 0; s < states_count; ++s) access.load(states[s], of_states[s]);
    for (int j = 0; j < access.size; ++j) {
      std::array<Scalar*, states_count> of_element{};
      for (std::size_t s = 0; s < states_count; ++s) of_element[s] = of_states[s] + j;
      rule(1, x + j, g + j, of_element);
    }
    access.store(x, values);
    for (std::size_t s = 0; s < states_count; ++s) access.store(of_states[s], states[s]);
    if (!shadow) continue;
    typename Access::template Values<float> rounded;
    for (int j = 0; j < access.size; ++j) rounded[j] = static_cast<float>(x[j]);
    shadow.with_data([&](auto* to) { access.put(rounded, to); });
  }
}

/// Runs in one thread.
template <class Scalars, class Scaler, class Scale>
LOCKSTEP_CUDA_KERNEL void complete_scalars(Scalars scalars, double const* totals, double max_norm,
                                           double const* sum_of_squares, Scaler scaler, Scale* scale, Scalars* to) {
  scalars.weight = totals[1];
  scalars.skip = !std::isfinite(totals[0]);
  if (scale) {
    scalars.loss_scale = scale->scale;
    scalars.step -= static_cast<double>(scale->skipped);
  }
  if (sum_of_squares) {
    auto const norm = std::sqrt(*sum_of_squares) / scalars.loss_scale, allowed = max_norm * scalars.weight;
    scalars.clip = max_norm > 0 && norm > allowed ? allowed / norm : 1;
    scalars.norm = scalars.weight != 0 ? norm / scalars.weight : 0;
    scalars.skip = scalars.skip || !std::isfinite(*sum_of_squares);
  }
  if (scale && scalars.weight != 0) *scale = scaler.after(*scale, !scalars.skip);
  *to = scalars;
}

}  // namespace LOCKSTEP_CUDA_ABI
}  // namespace detail

/// One pass over a range of an arena, queued on the stream. The step's scalars are in device memory, where the rule is
/// created from them. Neither the weight nor the norm is copied to the host. Rules are the host's, applied element by
/// element: make_rule and the rule's call must be constexpr, or marked for host and device.
/// @determinism bitwise, run to run and, for one build, on GPUs of one architecture
template <>
struct OptimizerStep<CudaSpace> : detail::KernelTypes<CudaSpace> {
  /// @throws ConfigError for a slice of touched rows: on a device all gradients are written
  template <int states_count, class Slice, class Scalars, class MakeRule>
  static void run(Stream stream, Slice const& slice, Scalars const* scalars, MakeRule const& make_rule) {
    using Scalar = std::remove_reference_t<decltype(*slice.values)>;
    expect<ConfigError>(slice.touched.words == nullptr, [] {
      return "OptimizerStep: row gradients are supported on the host only; use dense gradients for tables on a device";
    });
    constexpr auto states_of_slice = static_cast<std::size_t>(states_count);
    std::array<Scalar*, states_of_slice> states{};
    for (std::size_t s = 0; s < states_of_slice; ++s) states[s] = slice.states[s];
    // Each thread processes several groups of elements. A block thus creates its rule for some thousands of elements,
    // and no more blocks create it than any GPU runs at a time.
    detail::launch("kernel::OptimizerStep", stream,
                   std::min((slice.count + elements_per_thread - 1) / elements_per_thread, max_threads),
                   detail::step_elements<Scalar, decltype(slice.half_precision), Scalars, MakeRule, states_of_slice>,
                   slice.count, slice.values, slice.gradients, states, slice.half_precision, scalars, make_rule);
  }

  /// Writes a step's scalars to device memory: the values that the host knows, and the weight. With a sum of squared
  /// gradients, also writes whether they are finite. With a `max_norm`, also writes the clipping factor, by
  /// optim::GlobalNorm's formulas. Applies the loss scale, if not null, and then updates it with `scaler.after`.
  template <class Scalars, class Scaler, class Scale>
  static void complete(Stream stream, Scalars const& known, double const* totals, double max_norm,
                       double const* sum_of_squares, Scaler const& scaler, Scale* scale, Scalars* to) {
    detail::launch_grid("kernel::OptimizerStep::complete", stream, 1, 1,
                        detail::complete_scalars<Scalars, Scaler, Scale>, known, totals, max_norm, sum_of_squares,
                        scaler, scale, to);
  }

 private:
  static constexpr Index elements_per_thread = 8, max_threads = Index{1} << 19;
};

}}}  // namespace lockstep::kernel
