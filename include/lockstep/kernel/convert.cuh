// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/convert.hpp>
#include <lockstep/kernel/detail/launch.cuh>
#include <lockstep/kernel/detail/product.cuh>

namespace lockstep::inline LOCKSTEP_ABI::kernel {

/// As on the host, bit for bit, queued on the stream.
template <>
struct Convert<CudaSpace> {
  template <class T, class U>
  static void run(memory::Stream<CudaSpace> stream, TensorView<U const, 1, CudaSpace> x,
                  TensorView<T, 1, CudaSpace> to) {
    detail::for_elements("kernel::Convert", stream, x.size(), [=] __device__(Index i) {
      to.data[i] = static_cast<T>(static_cast<Accumulate<T>>(x.data[i]));
    });
  }

  template <class T, class U>
  static void run(memory::Stream<CudaSpace> stream, TensorView<U const, 1, CudaSpace> x, TensorView<T, 1, CudaSpace> to,
                  Write write) {
    if (write == Write::overwrite) return run<T, U>(stream, x, to);
    detail::for_elements("kernel::Convert", stream, x.size(), [=] __device__(Index i) {
      to.data[i] = static_cast<T>(static_cast<U>(to.data[i]) + x.data[i]);
    });
  }

  template <class T, class U>
  static void run_scaled(memory::Stream<CudaSpace> stream, TensorView<U const, 1, CudaSpace> x, U const* factor,
                         TensorView<T, 1, CudaSpace> to, Write write) {
    detail::for_elements("kernel::Convert", stream, x.size(), [=] __device__(Index i) {
      auto const scaled = detail::product(*factor, x.data[i]);
      to.data[i] = static_cast<T>(write == Write::add ? static_cast<U>(to.data[i]) + scaled : scaled);
    });
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
