// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/linear/gated_linear.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

template <class Scalar>
LOCKSTEP_INLINE void GatedLinear<HostSpace>::forward(Stream stream, Matrix<Scalar const> x, Matrix<Scalar const> weight,
                                                     Vector<Scalar const> bias, Matrix<Scalar const> gate,
                                                     Matrix<Scalar> slope, Matrix<Scalar> y) {
  auto const width = y.extent[1];
  expect<ShapeError>(gate.extent == y.extent && (!slope.data || slope.extent == y.extent), [&] {
    return "GatedLinear: the output is " + to_string(y.extent) + ", its gates are " + to_string(gate.extent) +
           " and their slopes " + to_string(slope.extent) + "; the three must have equal shapes";
  });
  expect<ShapeError>(!bias.data || bias.extent[0] == weight.extent[0], [&] {
    return "GatedLinear: weight is " + to_string(weight.extent) + " and bias is " + to_string(bias.extent) +
           "; bias needs one element per row of weight";
  });
  auto block = Gemm<HostSpace>::described<Scalar>(stream, 1, x, Transpose::no, weight, Transpose::yes, 0, y);
  block.bias = bias.data;
  Gemm<HostSpace>::multiply(stream, block, [&](Index first, Index rows, Index column, Index columns) {
    with_best_instructions([=] {
      for (Index row = first; row < first + rows; ++row) {
        auto const at = row * width + column;
        if (slope.data)
          for (Index c = at; c < at + columns; ++c) slope.data[c] *= y.data[c];
        for (Index c = at; c < at + columns; ++c) y.data[c] *= gate.data[c];
      }
    });
  });
}

template <class Scalar>
LOCKSTEP_INLINE void GatedLinear<HostSpace>::backward(Stream stream, Vector<Scalar const> dy, Vector<Scalar> gate,
                                                      Vector<Scalar> slope) {
  stream.pool().for_ranges(dy.size(), 4096, [=](Index begin, Index end) {
    with_best_instructions([=] {
      for (Index i = begin; i < end; ++i) gate.data[i] *= dy.data[i];
      for (Index i = begin; i < end; ++i) slope.data[i] *= dy.data[i];
    });
  });
}

// Instantiations in the library, for programs that link it.
#if defined(LOCKSTEP_COMPILED)
template void GatedLinear<HostSpace>::forward<float>(Stream stream, Matrix<float const> x, Matrix<float const> weight,
                                                     Vector<float const> bias, Matrix<float const> gate,
                                                     Matrix<float> slope, Matrix<float> y);
template void GatedLinear<HostSpace>::forward<double>(Stream stream, Matrix<double const> x,
                                                      Matrix<double const> weight, Vector<double const> bias,
                                                      Matrix<double const> gate, Matrix<double> slope,
                                                      Matrix<double> y);
template void GatedLinear<HostSpace>::backward<float>(Stream stream, Vector<float const> dy, Vector<float> gate,
                                                      Vector<float> slope);
template void GatedLinear<HostSpace>::backward<double>(Stream stream, Vector<double const> dy, Vector<double> gate,
                                                       Vector<double> slope);
#endif

}}}  // namespace lockstep::kernel
