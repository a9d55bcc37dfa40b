// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/detail/rounded_product.cuh>
#include <lockstep/kernel/detail/team.cuh>
#include <lockstep/kernel/detail/vectorized_access.cuh>
#include <lockstep/kernel/elementwise/learned_scale.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {
namespace detail { inline namespace LOCKSTEP_CUDA_ABI {

/// One block sums one chunk of elements.
template <class Scalar>
LOCKSTEP_CUDA_KERNEL void sum_products(Scalar const* dy, Scalar const* x, Index size, Index per_chunk,
                                       double* partial) {
  using Number = Accumulate<Scalar>;
  auto const begin = BlockTeam::first() * per_chunk, end = min(size, begin + per_chunk);
  double sum = 0;
  for (auto i = begin + BlockTeam::member(); i < end; i += BlockTeam::size)
    sum += static_cast<double>(rounded_product(static_cast<Number>(dy[i]), static_cast<Number>(x[i])));
  sum = BlockTeam::sum(sum);
  if (BlockTeam::member() == 0) partial[BlockTeam::first()] = sum;
}

/// Runs in one block.
template <class Number>
LOCKSTEP_CUDA_KERNEL void put_factor_gradient(LearnedFactor factor, Number const* s, double const* partial,
                                              Index chunks, Number* ds, Write write) {
  double sum = 0;
  for (auto i = BlockTeam::member(); i < chunks; i += BlockTeam::size) sum += partial[i];
  sum = BlockTeam::sum(sum);
  if (BlockTeam::member() > 0) return;
  Number const here = factor.gradient(*s, sum);
  *ds = write == Write::add ? *ds + here : here;
}

}  // namespace LOCKSTEP_CUDA_ABI
}  // namespace detail

/// CUDA version with the host's functions and shapes, queued on the stream. s is in device memory. s and its gradient
/// are in the type of the computation.
/// @determinism bitwise, run to run and, for one build, on GPUs of one architecture; sums differ from the host's by
/// rounding
template <>
struct LearnedScale<CudaSpace> : detail::KernelTypes<CudaSpace> {
  template <class Scalar>
  static void run(Stream stream, LearnedFactor factor, Accumulate<Scalar> const* s, Vector<Scalar const> x,
                  Vector<Scalar> y, Write write) {
    detail::for_vectorized<Scalar>("kernel::LearnedScale::run", stream, x.size(),
                                   [=] __device__(detail::WidestAccess<Scalar> const& here) {
                                     detail::AccessNumbers<Scalar> values;
                                     here.load_as(x.data, values);
                                     auto const by = factor.of(*s);
                                     for (auto& value : values) value = detail::rounded_product(by, value);
                                     here.put(values, y.data, write);
                                   });
  }

  [[nodiscard]] static constexpr Index chunks(Index elements) noexcept {
    return LearnedScale<HostSpace>::chunks(elements);
  }

  template <class Scalar>
  static void factor_backward(Stream stream, LearnedFactor factor, Accumulate<Scalar> const* s, Vector<Scalar const> dy,
                              Vector<Scalar const> x, Accumulate<Scalar>* ds, Write write, double* partial) {
    auto const count = chunks(x.size()), each = count > 0 ? (x.size() + count - 1) / count : 0;
    detail::launch_grid("kernel::LearnedScale::factor_backward", stream, static_cast<unsigned>(count),
                        detail::threads_per_block, detail::sum_products<Scalar>, dy.data, x.data, x.size(), each,
                        partial);
    detail::launch_grid("kernel::LearnedScale::factor_backward", stream, 1, detail::threads_per_block,
                        detail::put_factor_gradient<Accumulate<Scalar>>, factor, s, partial, count, ds, write);
  }
};

}}}  // namespace lockstep::kernel
