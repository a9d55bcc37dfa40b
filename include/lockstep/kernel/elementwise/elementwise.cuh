// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/detail/device_rules.cuh>
#include <lockstep/kernel/detail/vectorized_access.cuh>
#include <lockstep/kernel/elementwise/elementwise.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version with the host's functions and shapes, queued on the stream.
template <>
struct Elementwise<CudaSpace> : detail::OfSpace<CudaSpace> {
  template <class Rule, class T>
  static void forward(Stream stream, Vector<T const> x, Vector<T> y, Rule rule = {}) {
    detail::for_neighbours<T>(Rule::name, stream, x.size(), [=] __device__(detail::NeighboursOf<T> const& here) {
      detail::NumbersOf<T> values;
      here.load_as(x.data, values);
      for (auto& value : values) value = detail::on_device(rule)(value);
      here.put(values, y.data);
    });
  }

  template <class Rule, class T>
  static void forward(Stream stream, Vector<T const> x, Vector<T> y, Vector<T> slope, Rule rule = {}) {
    detail::for_neighbours<T>(Rule::name, stream, x.size(), [=] __device__(detail::NeighboursOf<T> const& here) {
      detail::NumbersOf<T> values, slopes;
      here.load_as(x.data, values);
      for (int j = 0; j < here.size; ++j) {
        auto const [value, derivative] = detail::on_device(rule).at(values[j]);
        values[j] = value;
        slopes[j] = derivative;
      }
      here.put(values, y.data);
      here.put(slopes, slope.data);
    });
  }

  template <class Rule, class T>
  static void backward(Stream stream, Vector<T const> dy, Vector<T const> kept, Vector<T> dx, Write write,
                       Rule rule = {}) {
    detail::for_neighbours<T>(Rule::name, stream, dy.size(), [=] __device__(detail::NeighboursOf<T> const& here) {
      detail::NumbersOf<T> gradients, inputs;
      here.load_as(dy.data, gradients);
      here.load_as(kept.data, inputs);
      for (int j = 0; j < here.size; ++j) gradients[j] = rule.backward(gradients[j], inputs[j]);
      here.put(gradients, dx.data, write);
    });
  }
};

}}}  // namespace lockstep::kernel
