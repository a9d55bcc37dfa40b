// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>

#include <lockstep/core/tree_sum.hpp>
#include <lockstep/kernel/detail/launch.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

namespace detail {

/// Largest number of terms that a thread sums in its registers.
inline constexpr int max_terms = 16;

/// Pointers to the terms, as a kernel argument: at most some kilobytes, and without functions that only the host has.
template <class Scalar>
struct Terms {
  Scalar* data[max_terms];
};

inline namespace LOCKSTEP_CUDA_ABI {

/// Sums adjacent terms, then adjacent pairs, and so on: the tree of core/tree_sum.hpp without recursion, so that each
/// term has a register.
template <class Scalar>
__device__ inline Scalar tree_of_terms(Terms<Scalar> const& terms, int count, Index i) noexcept {
  Scalar sums[max_terms];
  for (int k = 0; k < max_terms; ++k)
    if (k < count) sums[k] = terms.data[k][i];
  for (int distance = 1; distance < max_terms; distance *= 2)
    for (int k = 0; k + distance < max_terms; k += 2 * distance)
      if (k + distance < count) sums[k] += sums[k + distance];
  return sums[0];
}

}  // namespace LOCKSTEP_CUDA_ABI
}  // namespace detail

/// Sums buffers into the first one, queued on the stream: sources[0][i] = the tree's sum of element i over all sources,
/// for i < size. One kernel, which reads each source once, for up to 16 sources. The CUDA version of core's
/// tree_sum_into_first.
/// @determinism bitwise, and equal to the host's
template <class Scalar>
void sum_buffers(memory::Stream<CudaSpace> stream, std::span<Scalar* const> sources, Index size) {
  auto const count = static_cast<int>(sources.size());
  if (count < 2) return;
  detail::Terms<Scalar> terms{};
  if (count > detail::max_terms) {
    auto const left = static_cast<std::size_t>(tree_split(count));
    sum_buffers(stream, sources.first(left), size);
    sum_buffers(stream, sources.subspan(left), size);
    Scalar* const both[] = {sources[0], sources[left]};
    return sum_buffers(stream, std::span<Scalar* const>(both), size);
  }
  for (int k = 0; k < count; ++k) terms.data[k] = sources[static_cast<std::size_t>(k)];
  detail::for_elements("kernel::sum_buffers", stream, size,
                       [=] __device__(Index i) { terms.data[0][i] = detail::tree_of_terms(terms, count, i); });
}

template <class Scalar>
[[deprecated("kernel::sum_buffers")]] void sum_into_first(memory::Stream<CudaSpace> stream,
                                                          std::span<Scalar* const> sources, Index size) {
  sum_buffers(stream, sources, size);
}

}}}  // namespace lockstep::kernel
