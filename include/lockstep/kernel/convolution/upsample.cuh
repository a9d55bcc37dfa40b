// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/convolution/upsample.hpp>
#include <lockstep/kernel/detail/launch.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version with the host's functions, shapes and bits, queued on the stream. One thread processes one channel of a
/// position. Sums of 16-bit types are computed in float.
template <>
struct Upsample<CudaSpace> : detail::KernelTypes<CudaSpace> {
  template <class Scalar>
  static void forward(Stream stream, UpsampleShape const& s, Vector<Scalar const> x, Vector<Scalar> y) {
    detail::for_elements("kernel::Upsample::forward", stream, y.size(), [=] __device__(Index i) {
      auto const positions = elements(s.result()), at = i / s.channels;
      y.data[i] = x.data[at / positions * s.input_size() + s.source(at % positions) * s.channels + i % s.channels];
    });
  }

  template <class Scalar>
  static void backward(Stream stream, UpsampleShape const& s, Vector<Scalar const> dy, Vector<Scalar> dx, Write write) {
    detail::for_elements("kernel::Upsample::backward", stream, dx.size(), [=] __device__(Index i) {
      using Sum = Accumulate<Scalar>;
      auto const positions = elements(s.extent), at = i / s.channels;
      Sum sum = write == Write::add ? static_cast<Sum>(dx.data[i]) : Sum{0};
      auto const* const sample = dy.data + at / positions * s.output_size() + i % s.channels;
      s.for_copies(at % positions, [&](Index copy) { sum += static_cast<Sum>(sample[copy * s.channels]); });
      dx.data[i] = static_cast<Scalar>(sum);
    });
  }
};

}}}  // namespace lockstep::kernel
