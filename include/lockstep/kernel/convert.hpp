// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/detail/convert_float16.hpp>
#include <lockstep/kernel/write.hpp>
#include <lockstep/memory/stream.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel {

/// Elements of one type as another.
template <class Space>
struct Convert {
  static_assert(sizeof(Space) == 0, "Lockstep: include lockstep/cuda.cuh and compile with nvcc");
};

template <>
struct Convert<HostSpace> {
  /// to[i] = x[i].
  /// @shape x, to [n]
  /// @determinism bitwise, for any number of threads
  template <class T, class U>
  static void run(memory::Stream<HostSpace> stream, TensorView<U const, 1, HostSpace> x,
                  TensorView<T, 1, HostSpace> to) {
    stream.pool().for_ranges(x.size(), 8192, [=](Index begin, Index end) {
      if (detail::convert_float16(x.data + begin, to.data + begin, end - begin)) return;
      with_best_instructions([=] {
        for (Index i = begin; i < end; ++i) to.data[i] = static_cast<T>(static_cast<Accumulate<T>>(x.data[i]));
      });
    });
  }

  /// to[i] = x[i], or to[i] += x[i] with the sum kept in U until it is rounded.
  /// @shape x, to [n]
  template <class T, class U>
  static void run(memory::Stream<HostSpace> stream, TensorView<U const, 1, HostSpace> x, TensorView<T, 1, HostSpace> to,
                  Write write) {
    if (write == Write::overwrite) return run<T, U>(stream, x, to);
    stream.pool().for_ranges(x.size(), 8192, [=](Index begin, Index end) {
      with_best_instructions([=] {
        for (Index i = begin; i < end; ++i) to.data[i] = static_cast<T>(static_cast<U>(to.data[i]) + x.data[i]);
      });
    });
  }

  /// The same of factor x[i]. The factor is read where the space's memory is, when this is done.
  template <class T, class U>
  static void run_scaled(memory::Stream<HostSpace> stream, TensorView<U const, 1, HostSpace> x, U const* factor,
                         TensorView<T, 1, HostSpace> to, Write write) {
    stream.pool().for_ranges(x.size(), 8192, [=, by = *factor](Index begin, Index end) {
      with_best_instructions([=] {
        for (Index i = begin; i < end; ++i)
          to.data[i] =
              static_cast<T>(write == Write::add ? static_cast<U>(to.data[i]) + by * x.data[i] : by * x.data[i]);
      });
    });
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
