// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/binary_operation.hpp>
#include <lockstep/kernel/detail/launch.cuh>
#include <lockstep/kernel/detail/product.cuh>

namespace lockstep::inline LOCKSTEP_ABI::kernel {

/// Functions, shapes and bits as on the host, queued on the stream.
template <>
struct BinaryOperation<CudaSpace> {
  using Stream = memory::Stream<CudaSpace>;
  template <class T>
  using Vector = TensorView<T, 1, CudaSpace>;

  template <class Rule, class T>
  static void forward(Stream stream, Vector<T const> x, Vector<T const> y, Vector<T> z) {
    detail::for_elements(Rule::name, stream, x.size(), [=] __device__(Index i) {
      using Number = Accumulate<T>;
      z.data[i] = static_cast<T>(Rule{}(static_cast<Number>(x.data[i]), static_cast<Number>(y.data[i])));
    });
  }

  template <class Rule, class T>
  static void backward(Stream stream, Vector<T const> dz, Vector<T const> y, Vector<T> dx, Write write) {
    detail::for_elements(Rule::name, stream, dz.size(), [=] __device__(Index i) {
      using Number = Accumulate<T>;
      auto const second = Rule::reads_second ? static_cast<Number>(y.data[i]) : Number{0};
      auto const here = Rule{}(static_cast<Number>(dz.data[i]), second);
      dx.data[i] =
          static_cast<T>(write == Write::overwrite ? here : detail::sum_apart(static_cast<Number>(dx.data[i]), here));
    });
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
