// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/gemm/gemm.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Affine map of each row whose outputs are multiplied by gates.
template <class Space>
struct GatedLinear : detail::NotIncluded<Space> {};

template <>
struct GatedLinear<HostSpace> : detail::KernelTypes<HostSpace> {
  /// Computes h = x weight^T + bias, then y = gate * h and slope *= h while h is in cache. If `slope` holds the gate's
  /// slope with respect to its input, it becomes y's slope with respect to that input. Skips a null slope.
  /// @shape x [rows, inputs]   @shape weight [outputs, inputs]   @shape bias [outputs], or null for none
  /// @shape gate, slope, y [rows, outputs]
  /// @determinism bitwise, for any number of threads
  /// @throws ShapeError if the shapes disagree; reports both
  template <class T>
  static void forward(Stream stream, Matrix<T const> x, Matrix<T const> weight, Vector<T const> bias,
                      Matrix<T const> gate, Matrix<T> slope, Matrix<T> y) {
    auto const width = y.extent[1];
    expect<ShapeError>(gate.extent == y.extent && (!slope.data || slope.extent == y.extent), [&] {
      return "GatedLinear: the output is " + to_string(y.extent) + ", its gates are " + to_string(gate.extent) +
             " and their slopes " + to_string(slope.extent) + "; the three must have equal shapes";
    });
    auto block = Gemm<HostSpace>::described<T>(stream, 1, x, Transpose::no, weight, Transpose::yes, 0, y);
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

  /// Computes gate *= dy and slope *= dy, which are then the gradients of h and of the gates' input.
  /// @shape dy, gate, slope [n]
  /// @determinism bitwise, for any number of threads
  template <class T>
  static void backward(Stream stream, Vector<T const> dy, Vector<T> gate, Vector<T> slope) {
    stream.pool().for_ranges(dy.size(), 4096, [=](Index begin, Index end) {
      with_best_instructions([=] {
        for (Index i = begin; i < end; ++i) gate.data[i] *= dy.data[i];
        for (Index i = begin; i < end; ++i) slope.data[i] *= dy.data[i];
      });
    });
  }
};

}}}  // namespace lockstep::kernel
