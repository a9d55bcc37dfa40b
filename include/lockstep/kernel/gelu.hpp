// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/detail/in_place.hpp>
#include <lockstep/kernel/detail/normal_distribution.hpp>
#include <lockstep/kernel/write.hpp>
#include <lockstep/memory/stream.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel {

/// The Gaussian error linear unit, exact: gelu(x) = x Phi(x), Phi the integral of the standard normal distribution.
template <class Space>
struct Gelu {
  static_assert(sizeof(Space) == 0, "Lockstep: include lockstep/cuda.cuh and compile with nvcc");
};

template <>
struct Gelu<HostSpace> {
  using Stream = memory::Stream<HostSpace>;
  template <class T>
  using Vector = TensorView<T, 1, HostSpace>;

  /// y = gelu(x).
  /// @shape x, y [n]; y may be x
  /// @determinism bitwise, for any number of threads
  template <class T>
  static void forward(Stream stream, Vector<T const> x, Vector<T> y) {
    stream.pool().for_ranges(x.size(), grain,
                             [=](Index begin, Index end) { apply(x.data + begin, y.data + begin, end - begin); });
  }

  /// y = gelu(x) and slope = gelu'(x): both come from the same exponential, so backward need not see x again.
  /// @shape x, y, slope [n]; slope may be x
  template <class T>
  static void forward(Stream stream, Vector<T const> x, Vector<T> y, Vector<T> slope) {
    stream.pool().for_ranges(x.size(), grain, [=](Index begin, Index end) {
      apply(x.data + begin, y.data + begin, slope.data + begin, end - begin);
    });
  }

  /// dx = dy * slope, or dx += that.
  /// @shape dy, slope, dx [n]; dx may be dy
  template <class T>
  static void backward(Stream stream, Vector<T const> dy, Vector<T const> slope, Vector<T> dx, Write write) {
    stream.pool().for_ranges(dy.size(), grain, [=](Index begin, Index end) {
      with_best_instructions([=] {
        detail::maybe_in_place(dy.data, dx.data, [=](T const* from, T* to) {
          if (write == Write::overwrite) {
            for (Index i = begin; i < end; ++i) to[i] = from[i] * slope.data[i];
          } else {
            for (Index i = begin; i < end; ++i) to[i] += from[i] * slope.data[i];
          }
        });
      });
    });
  }

  /// On the calling thread, for kernels that apply it to a part of their output.
  template <class T>
  static void apply(T const* x, T* y, Index count) {
    with_best_instructions([=] {
      detail::maybe_in_place(x, y, [=](T const* from, T* to) {
        for (Index i = 0; i < count; ++i) to[i] = from[i] * detail::normal_distribution(from[i]).integral;
      });
    });
  }
  template <class T>
  static void apply(T const* x, T* y, T* slope, Index count) {
    with_best_instructions([=] {
      detail::maybe_in_place(x, slope, [=](T const* from, T* to) {
        for (Index i = 0; i < count; ++i) {
          T const at = from[i];
          auto const normal = detail::normal_distribution(at);
          y[i] = at * normal.integral;
          to[i] = normal.integral + at * normal.density;
        }
      });
    });
  }

 private:
  static constexpr Index grain = 4096;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
