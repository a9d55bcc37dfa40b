// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/detail/of_space.hpp>
#include <lockstep/kernel/gemm.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel {

/// An affine map of every row whose outputs are multiplied by gates.
template <class Space>
struct GatedLinear : detail::NotIncluded<Space> {};

template <>
struct GatedLinear<HostSpace> : detail::OfSpace<HostSpace> {
  /// y = gate * h for h = x weight^T + bias, while h is in cache, and slope *= h: where `slope` was the gate's slope
  /// towards what it was made of, it becomes that of y. A null slope is left out.
  /// @shape x [rows, inputs]   @shape weight [outputs, inputs]   @shape bias [outputs], or a null one: none
  /// @shape gate, slope, y [rows, outputs]
  /// @determinism bitwise, for any number of threads
  /// @throws ShapeError when the shapes disagree; says both numbers
  template <class T>
  static void forward(Stream stream, Matrix<T const> x, Matrix<T const> weight, Vector<T const> bias,
                      Matrix<T const> gate, Matrix<T> slope, Matrix<T> y) {
    auto const width = y.extent[1];
    expect<ShapeError>(gate.extent == y.extent && (!slope.data || slope.extent == y.extent), [&] {
      return "GatedLinear: the output is " + to_string(y.extent) + ", its gates are " + to_string(gate.extent) +
             " and their slopes " + to_string(slope.extent) + "; they must be alike";
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

  /// gate *= dy and slope *= dy: they become the gradients of h and of what the gates were made of.
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

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
