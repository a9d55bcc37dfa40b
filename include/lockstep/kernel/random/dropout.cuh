// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/detail/mask_bits.cuh>
#include <lockstep/kernel/detail/rounded_product.cuh>
#include <lockstep/kernel/detail/vectorized_access.cuh>
#include <lockstep/kernel/random/dropout.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {
namespace detail { inline namespace LOCKSTEP_CUDA_ABI {

/// One thread processes the channels of a slot that share a block of random bits, if slots begin on multiples of 8
/// elements.
template <class Scalar>
LOCKSTEP_CUDA_KERNEL void dropout(DropoutMask mask, SequenceLayout<CudaSpace> layout, Index width, Scalar const* x,
                                  Scalar* y, Write write) {
  using Sum = Accumulate<Scalar>;
  auto const groups = mask_groups(width);
  auto const scale = static_cast<Sum>(mask.scale());
  for (auto i = grid_thread(); i < layout.slots * groups; i += grid_threads()) {
    auto const slot = i / groups, row = layout.row_of(slot), t = slot - layout.start(row);
    DropoutAccess const access(i % groups * DropoutAccess::size, width);
    DropoutAccess::Values<Sum> values = {};
    if (t < layout.tokens(row)) {
      MaskBits bits(mask, layout.positions.data[row]);
      access.load_as(x + slot * width, values);
      for (int j = 0; j < access.size; ++j) {
        bool const keeps = !mask.active() || bits.keeps(t * width + access.first() + j);
        values[j] = keeps ? rounded_product(values[j], scale) : Sum{0};
      }
    } else if (write == Write::add) {
      continue;
    }
    access.put(values, y + slot * width, write);
  }
}

}  // namespace LOCKSTEP_CUDA_ABI
}  // namespace detail

template <>
struct Dropout<CudaSpace> : detail::KernelTypes<CudaSpace> {
  /// CUDA version, bit-identical to the host's; queued on `stream`.
  template <class Scalar>
  static void apply(Stream stream, DropoutMask mask, SequenceLayout<CudaSpace> layout, Matrix<Scalar const> x,
                    Matrix<Scalar> y, Write write) {
    auto const width = x.extent[1];
    detail::launch("kernel::Dropout", stream, layout.slots * detail::mask_groups(width), detail::dropout<Scalar>, mask,
                   layout, width, x.data, y.data, write);
  }
};

}}}  // namespace lockstep::kernel
