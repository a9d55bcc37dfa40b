// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/detail/launch.cuh>
#include <lockstep/kernel/detail/mask_bits.cuh>
#include <lockstep/kernel/detail/product.cuh>
#include <lockstep/kernel/dropout.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel {
namespace detail {
inline namespace LOCKSTEP_CUDA_ABI {

/// A thread takes 8 channels of a slot: one block of random bits where slots begin on multiples of 8.
template <class T>
LOCKSTEP_CUDA_KERNEL void dropout(DropoutMask mask, SequenceLayout<CudaSpace> layout, Index width, T const* x, T* y,
                                  Write write) {
  auto const groups = (width + 7) / 8;
  using Sum = Accumulate<T>;
  auto const scale = static_cast<Sum>(mask.scale());
  for (auto i = grid_thread(); i < layout.slots * groups; i += grid_threads()) {
    auto const slot = i / groups, row = layout.row_of(slot), t = slot - layout.start(row);
    auto const first = i % groups * 8, last = min(first + 8, width);
    bool const token = t < layout.tokens(row);
    MaskBits bits(mask, layout.positions.data[row]);
    for (auto c = first; c < last; ++c) {
      auto const at = slot * width + c;
      bool const keeps = token && (!mask.active() || bits.keeps(t * width + c));
      Sum const value = keeps ? product(static_cast<Sum>(x[at]), scale) : Sum{0};
      if (write == Write::overwrite)
        y[at] = static_cast<T>(value);
      else if (token)
        y[at] = static_cast<T>(y[at] + value);
    }
  }
}

}  // namespace LOCKSTEP_CUDA_ABI
}  // namespace detail

template <>
struct Dropout<CudaSpace> {
  /// As on the host, bit for bit; queued on `stream`.
  template <class T>
  static void apply(memory::Stream<CudaSpace> stream, DropoutMask mask, SequenceLayout<CudaSpace> layout,
                    TensorView<T const, 2, CudaSpace> x, TensorView<T, 2, CudaSpace> y, Write write) {
    auto const width = x.extent[1];
    detail::launch("kernel::Dropout", stream, layout.slots * ((width + 7) / 8), detail::dropout<T>, mask, layout, width,
                   x.data, y.data, write);
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
