// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include <lockstep/kernel/detail/launch.cuh>
#include <lockstep/kernel/sequence/clear_padding.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version, bit-identical to the host's; queued on the stream.
template <>
struct ClearPadding<CudaSpace> : detail::KernelTypes<CudaSpace> {
  using Lengths = Vector<std::int32_t const>;

  template <class Scalar>
  static void run(Stream stream, SequenceLayout<CudaSpace> const& layout, Matrix<Scalar const> x, Matrix<Scalar> y,
                  Write write) {
    detail::for_elements("kernel::ClearPadding::run", stream, x.size(), [=] __device__(Index i) {
      bool const token = layout.is_token(i / x.extent[1]);
      if (write == Write::overwrite)
        y.data[i] = token ? x.data[i] : Scalar{0};
      else if (token)
        y.data[i] = static_cast<Scalar>(y.data[i] + x.data[i]);
    });
  }

  static void window_counts(Stream stream, Lengths lengths, Index reach, Index stride, Index padding, Index max_count,
                            Vector<std::int32_t> to) {
    detail::for_elements("kernel::ClearPadding::window_counts", stream, lengths.size(), [=] __device__(Index row) {
      to.data[row] = ClearPadding<HostSpace>::window_count(lengths.data[row], reach, stride, padding, max_count);
    });
  }
};

}}}  // namespace lockstep::kernel
