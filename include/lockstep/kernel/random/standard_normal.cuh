// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/detail/vectorized_access.cuh>
#include <lockstep/kernel/random/standard_normal.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {
namespace detail { inline namespace LOCKSTEP_CUDA_ABI {

/// One thread processes 4 channels of a slot: one block of random bits if slots begin on multiples of 4.
template <class Scalar>
LOCKSTEP_CUDA_KERNEL void fill_standard_normal(DropoutMask mask, SequenceLayout<CudaSpace> layout, Index width,
                                               Scalar* to) {
  using Access = VectorizedAccess<4>;
  auto const groups = (width + Access::size - 1) / Access::size;
  Philox const random(mask.resolved().key);
  for (auto i = grid_thread(); i < layout.slots * groups; i += grid_threads()) {
    auto const slot = i / groups, row = layout.row_of(slot), t = slot - layout.start(row);
    Access const access(i % groups * Access::size, width);
    Access::Values<Accumulate<Scalar>> values = {};
    if (t < layout.tokens(row)) {
      auto const position = static_cast<std::uint64_t>(layout.positions.data[row]);
      auto const element = static_cast<std::uint64_t>(t * width + access.first());
      auto const skip = static_cast<int>(element % 4);
      auto const first = random(position, element / 4), second = skip > 0 ? random(position, element / 4 + 1) : first;
      for (int j = 0; j < access.size; ++j) {
        std::uint32_t word = 0;
        for (int k = 0; k < 4; ++k) {  // selected, not indexed: blocks stay in registers
          word = skip + j == k ? first[static_cast<std::size_t>(k)] : word;
          word = skip + j == k + 4 ? second[static_cast<std::size_t>(k)] : word;
        }
        values[j] = static_cast<Accumulate<Scalar>>(normal_quantile(word, std::sqrt(squared_tail(word))));
      }
    }
    access.put(values, to + slot * width);
  }
}

}  // namespace LOCKSTEP_CUDA_ABI
}  // namespace detail

template <>
struct StandardNormal<CudaSpace> : detail::KernelTypes<CudaSpace> {
  /// CUDA version, equal to the host's except for rounding; queued on `stream`.
  /// @determinism bitwise, run to run and, for one build, on GPUs of one architecture
  template <class Scalar>
  static void fill(Stream stream, DropoutMask mask, SequenceLayout<CudaSpace> layout, Matrix<Scalar> to) {
    auto const width = to.extent[1];
    detail::launch("kernel::StandardNormal", stream, layout.slots * ((width + 3) / 4),
                   detail::fill_standard_normal<Scalar>, mask, layout, width, to.data);
  }
};

}}}  // namespace lockstep::kernel
