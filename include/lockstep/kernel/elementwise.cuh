// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/detail/launch.cuh>
#include <lockstep/kernel/detail/product.cuh>
#include <lockstep/kernel/elementwise.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel {

/// Functions and shapes as on the host, queued on the stream.
template <>
struct Elementwise<CudaSpace> {
  using Stream = memory::Stream<CudaSpace>;
  template <class T>
  using Vector = TensorView<T, 1, CudaSpace>;

  template <class Rule, class T>
  static void forward(Stream stream, Vector<T const> x, Vector<T> y) {
    detail::for_elements(Rule::name, stream, x.size(), [=] __device__(Index i) {
      y.data[i] = static_cast<T>(Rule{}(static_cast<Accumulate<T>>(x.data[i])));
    });
  }

  template <class Rule, class T>
  static void forward(Stream stream, Vector<T const> x, Vector<T> y, Vector<T> slope) {
    detail::for_elements(Rule::name, stream, x.size(), [=] __device__(Index i) {
      auto const [value, derivative] = Rule{}.at(static_cast<Accumulate<T>>(x.data[i]));
      y.data[i] = static_cast<T>(value);
      slope.data[i] = static_cast<T>(derivative);
    });
  }

  template <class Rule, class T>
  static void backward(Stream stream, Vector<T const> dy, Vector<T const> kept, Vector<T> dx, Write write) {
    detail::for_elements(Rule::name, stream, dy.size(), [=] __device__(Index i) {
      using Sum = Accumulate<T>;
      auto const here = Rule{}.backward(static_cast<Sum>(dy.data[i]), static_cast<Sum>(kept.data[i]));
      dx.data[i] =
          static_cast<T>(write == Write::overwrite ? here : detail::sum_apart(static_cast<Sum>(dx.data[i]), here));
    });
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
