// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/write.hpp>
#include <lockstep/memory/stream.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel {

/// The rectified linear unit: relu(x) = max(0, x). A nan stays one.
template <class Space>
struct Relu {
  static_assert(sizeof(Space) == 0, "Lockstep: include lockstep/cuda.cuh and compile with nvcc");
};

template <>
struct Relu<HostSpace> {
  using Stream = memory::Stream<HostSpace>;
  template <class T>
  using Vector = TensorView<T, 1, HostSpace>;

  /// y = relu(x).
  /// @shape x, y [n]; y may be x
  /// @determinism bitwise, for any number of threads
  template <class T>
  static void forward(Stream stream, Vector<T const> x, Vector<T> y) {
    stream.pool().for_ranges(x.size(), grain,
                             [=](Index begin, Index end) { apply(x.data + begin, y.data + begin, end - begin); });
  }

  /// dx = dy where y > 0 and 0 elsewhere, or dx += that; where y is a nan, dy passes, too.
  /// @shape dy, y, dx [n]; dx may be dy
  template <class T>
  static void backward(Stream stream, Vector<T const> dy, Vector<T const> y, Vector<T> dx, Write write) {
    stream.pool().for_ranges(dy.size(), grain, [=](Index begin, Index end) {
      with_best_instructions([=] {
        if (write == Write::overwrite) {
          for (Index i = begin; i < end; ++i) dx.data[i] = y.data[i] <= 0 ? T(0) : dy.data[i];
        } else {
          for (Index i = begin; i < end; ++i) dx.data[i] += y.data[i] <= 0 ? T(0) : dy.data[i];
        }
      });
    });
  }

  /// On the calling thread, for kernels that apply it to a part of their output.
  template <class T>
  static void apply(T const* x, T* y, Index count) {
    with_best_instructions([=] {
      for (Index i = 0; i < count; ++i) y[i] = x[i] < 0 ? T(0) : x[i];
    });
  }

 private:
  static constexpr Index grain = 8192;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
