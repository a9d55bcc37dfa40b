// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/detail/launch.cuh>
#include <lockstep/kernel/detail/rounded_product.cuh>
#include <lockstep/kernel/detail/sum_columns.cuh>
#include <lockstep/kernel/sequence_layout.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {
inline namespace LOCKSTEP_CUDA_ABI {

/// Sums 32 channels of a sequence per block. Each of 8 threads per channel sums every eighth token, then their sums are
/// added in order.
template <class Sum, class Term, class Put>
LOCKSTEP_CUDA_KERNEL void sum_of_tokens(SequenceLayout<CudaSpace> layout, Index width, Term term, Put put) {
  auto const tiles = (width + warp - 1) / warp;
  auto const row = Index{blockIdx.x} / tiles, channel = Index{blockIdx.x} % tiles * warp + lane();
  auto const first = layout.start(row), end = first + layout.tokens(row);
  Sum sum = 0;
  if (channel < width)
    for (auto slot = first + Index{threadIdx.x} / warp; slot < end; slot += warps_per_block)
      sum = rounded_sum(sum, term(slot * width + channel));
  sum = sum_of_column(sum);
  if (threadIdx.x < warp && channel < width) put(row, row * width + channel, sum);
}

}  // namespace LOCKSTEP_CUDA_ABI

/// Calls put(row, row * width + channel, sum) for each channel of each sequence. `sum` is the sum over its tokens of
/// term(at), each rounded by itself; `at` is the offset of the token's channel in [layout.slots, width].
/// @determinism bitwise: the order depends only on the sequence's tokens
template <class Sum, class Term, class Put>
void sum_sequences(char const* name, memory::Stream<CudaSpace> stream, SequenceLayout<CudaSpace> layout, Index width,
                   Term const& term, Put const& put) {
  auto const tiles = (width + warp - 1) / warp;
  launch_grid(name, stream, static_cast<unsigned>(layout.rows * tiles), threads_per_block,
              sum_of_tokens<Sum, Term, Put>, layout, width, term, put);
}

}}}  // namespace lockstep::kernel::detail
