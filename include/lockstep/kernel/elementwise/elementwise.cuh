// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/detail/device_rules.cuh>
#include <lockstep/kernel/detail/vectorized_access.cuh>
#include <lockstep/kernel/elementwise/elementwise.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version with the host's functions and shapes, queued on the stream.
template <>
struct Elementwise<CudaSpace> : detail::KernelTypes<CudaSpace> {
  template <class Rule, class Scalar>
  static void forward(Stream stream, Vector<Scalar const> x, Vector<Scalar> y, Rule rule = {}) {
    detail::for_vectorized<Scalar>(Rule::name, stream, x.size(),
                                   [=] __device__(detail::WidestAccess<Scalar> const& access) {
                                     detail::AccessNumbers<Scalar> values;
                                     access.load_as(x.data, values);
                                     for (auto& value : values) value = detail::device_rule(rule)(value);
                                     access.put(values, y.data);
                                   });
  }

  template <class Rule, class Scalar>
  static void forward(Stream stream, Vector<Scalar const> x, Vector<Scalar> y, Vector<Scalar> slope, Rule rule = {}) {
    detail::for_vectorized<Scalar>(Rule::name, stream, x.size(),
                                   [=] __device__(detail::WidestAccess<Scalar> const& access) {
                                     detail::AccessNumbers<Scalar> values, slopes;
                                     access.load_as(x.data, values);
                                     for (int j = 0; j < access.size; ++j) {
                                       auto const [value, derivative] = detail::device_rule(rule).at(values[j]);
                                       values[j] = value;
                                       slopes[j] = derivative;
                                     }
                                     access.put(values, y.data);
                                     access.put(slopes, slope.data);
                                   });
  }

  template <class Rule, class Scalar>
  static void backward(Stream stream, Vector<Scalar const> dy, Vector<Scalar const> kept, Vector<Scalar> dx,
                       Write write, Rule rule = {}) {
    detail::for_vectorized<Scalar>(Rule::name, stream, dy.size(),
                                   [=] __device__(detail::WidestAccess<Scalar> const& access) {
                                     detail::AccessNumbers<Scalar> gradients, inputs;
                                     access.load_as(dy.data, gradients);
                                     access.load_as(kept.data, inputs);
                                     for (int j = 0; j < access.size; ++j)
                                       gradients[j] = rule.backward(gradients[j], inputs[j]);
                                     access.put(gradients, dx.data, write);
                                   });
  }
};

}}}  // namespace lockstep::kernel
