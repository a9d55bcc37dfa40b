// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/detail/mask_bits.cuh>
#include <lockstep/kernel/detail/rounded_product.cuh>
#include <lockstep/kernel/detail/vectorized_access.cuh>
#include <lockstep/kernel/random/sample_dropout.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {
namespace detail { inline namespace LOCKSTEP_CUDA_ABI {

/// One thread processes adjacent channels of a slot, and computes its sample's random bits once for all of them.
template <class Scalar>
LOCKSTEP_CUDA_KERNEL void drop_samples(DropoutMask mask, SequenceLayout<CudaSpace> layout, Index width, Scalar const* x,
                                       Scalar* y, Write write) {
  using Number = Accumulate<Scalar>;
  auto const groups = mask_groups(width);
  auto const scale = static_cast<Number>(mask.scale());
  for (auto i = grid_thread(); i < layout.slots * groups; i += grid_threads()) {
    auto const slot = i / groups;
    bool const keeps = MaskBits(mask, layout.positions.data[layout.row_of(slot)]).keeps(0);
    if (!keeps && write == Write::add) continue;
    DropoutAccess const access(i % groups * DropoutAccess::size, width);
    DropoutAccess::Values<Number> values = {};
    if (keeps) {
      access.load_as(x + slot * width, values);
      for (auto& value : values) value = rounded_product(value, scale);
    }
    access.put(values, y + slot * width, write);
  }
}

}  // namespace LOCKSTEP_CUDA_ABI
}  // namespace detail

template <>
struct SampleDropout<CudaSpace> : detail::KernelTypes<CudaSpace> {
  /// CUDA version, bit-identical to the host's; queued on `stream`.
  template <class Scalar>
  static void apply(Stream stream, DropoutMask mask, SequenceLayout<CudaSpace> layout, Matrix<Scalar const> x,
                    Matrix<Scalar> y, Write write) {
    auto const width = x.extent[1];
    detail::launch("kernel::SampleDropout", stream, layout.slots * detail::mask_groups(width),
                   detail::drop_samples<Scalar>, mask, layout, width, x.data, y.data, write);
  }
};

}}}  // namespace lockstep::kernel
