// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/optimizer/optimizer_step.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// One pass over a range of an arena, queued on the stream. The step's scalars are in device memory, where the rule is
/// created from them. Neither the weight nor the norm is copied to the host. Rules are the host's, applied element by
/// element: make_rule and the rule's call must be constexpr, or marked for host and device.
/// @determinism bitwise, run to run and, for one build, on GPUs of one architecture
template <>
struct OptimizerStep<CudaSpace> : detail::KernelTypes<CudaSpace> {
  /// Updates a slice by the optimizer's rule, as on the host.
  /// @throws ConfigError for a slice of touched rows: on a device all gradients are written
  template <int states_count, class Slice, class Scalars, class MakeRule>
  static void run(Stream stream, Slice const& slice, Scalars const* scalars, MakeRule const& make_rule);

  /// Writes a step's scalars to device memory: the values that the host knows, and the weight. With a sum of squared
  /// gradients, also writes whether they are finite. With a `max_norm`, also writes the clipping factor, by
  /// optim::GlobalNorm's formulas. Applies the loss scale, if not null, and then updates it with `scaler.after`.
  template <class Scalars, class Scaler, class Scale>
  static void complete(Stream stream, Scalars const& known, double const* totals, double max_norm,
                       double const* sum_of_squares, Scaler const& scaler, Scale* scale, Scalars* to);

 private:
  static constexpr Index elements_per_thread = 8, max_threads = Index{1} << 19;
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED) || defined(__CUDACC__)
#include <lockstep/kernel/optimizer/optimizer_step.icuh>
#endif
