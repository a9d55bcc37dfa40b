// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include <lockstep/kernel/detail/launch.cuh>
#include <lockstep/kernel/sequence/arange.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

template <>
struct Arange<CudaSpace> : detail::KernelTypes<CudaSpace> {
  /// CUDA version, queued on the stream.
  static void fill(Stream stream, std::int32_t first, Vector<std::int32_t> to) {
    detail::for_elements("kernel::Arange", stream, to.size(),
                         [=] __device__(Index i) { to.data[i] = first + static_cast<std::int32_t>(i); });
  }
};

}}}  // namespace lockstep::kernel
