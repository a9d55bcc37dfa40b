// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/detail/in_place.hpp>
#include <lockstep/kernel/write.hpp>
#include <lockstep/memory/stream.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel {

/// Elementwise sums.
template <class Space>
struct Add {
  static_assert(sizeof(Space) == 0, "Lockstep: include lockstep/cuda.cuh and compile with nvcc");
};

template <>
struct Add<HostSpace> {
  using Stream = memory::Stream<HostSpace>;
  template <class T>
  using Vector = TensorView<T, 1, HostSpace>;

  /// z = x + y.
  /// @shape x, y, z [n]; z may be x or y
  /// @determinism bitwise, for any number of threads
  template <class T>
  static void forward(Stream stream, Vector<T const> x, Vector<T const> y, Vector<T> z) {
    stream.pool().for_ranges(x.size(), grain, [=](Index begin, Index end) {
      with_best_instructions([=] {
        detail::maybe_in_place(x.data, z.data, [=](T const* from, T* to) {
          for (Index i = begin; i < end; ++i) to[i] = from[i] + y.data[i];
        });
      });
    });
  }

  /// dx = dz, or dx += dz: the gradient of either side.
  /// @shape dz, dx [n]
  template <class T>
  static void backward(Stream stream, Vector<T const> dz, Vector<T> dx, Write write) {
    stream.pool().for_ranges(dz.size(), grain, [=](Index begin, Index end) {
      with_best_instructions([=] {
        if (write == Write::overwrite) {
          for (Index i = begin; i < end; ++i) dx.data[i] = dz.data[i];
        } else {
          for (Index i = begin; i < end; ++i) dx.data[i] += dz.data[i];
        }
      });
    });
  }

 private:
  static constexpr Index grain = 8192;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
