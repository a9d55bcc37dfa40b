// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/copy/detail/convert_float16.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Converts elements from one type to another.
template <class Space>
struct Convert : detail::NotIncluded<Space> {};

template <>
struct Convert<HostSpace> : detail::KernelTypes<HostSpace> {
  /// Computes to[i] = x[i].
  /// @shape x, to [n]
  /// @determinism bitwise, for any number of threads
  template <class T, class U>
  static void run(Stream stream, Vector<U const> x, Vector<T> to);

  /// Computes to[i] = x[i], or adds x[i] to to[i]. The sum is in U until it is rounded.
  /// @shape x, to [n]
  template <class T, class U>
  static void run(Stream stream, Vector<U const> x, Vector<T> to, Write write);

  /// Computes the conversion of factor * x[i] like `run`. The factor is in the memory of the space, and is read when
  /// the work runs.
  template <class T, class U>
  static void run_scaled(Stream stream, Vector<U const> x, U const* factor, Vector<T> to, Write write);
};

template <class T, class U>
void Convert<HostSpace>::run(Stream stream, Vector<U const> x, Vector<T> to) {
  stream.pool().for_ranges(x.size(), 8192, [=](Index begin, Index end) {
    if (detail::convert_float16(x.data + begin, to.data + begin, end - begin)) return;
    with_best_instructions([=] {
      for (Index i = begin; i < end; ++i) to.data[i] = static_cast<T>(static_cast<Accumulate<T>>(x.data[i]));
    });
  });
}

template <class T, class U>
void Convert<HostSpace>::run(Stream stream, Vector<U const> x, Vector<T> to, Write write) {
  if (write == Write::overwrite) return run<T, U>(stream, x, to);
  stream.pool().for_ranges(x.size(), 8192, [=](Index begin, Index end) {
    with_best_instructions([=] {
      for (Index i = begin; i < end; ++i) to.data[i] = static_cast<T>(static_cast<U>(to.data[i]) + x.data[i]);
    });
  });
}

template <class T, class U>
void Convert<HostSpace>::run_scaled(Stream stream, Vector<U const> x, U const* factor, Vector<T> to, Write write) {
  stream.pool().for_ranges(x.size(), 8192, [=, by = *factor](Index begin, Index end) {
    with_best_instructions([=] {
      for (Index i = begin; i < end; ++i)
        to.data[i] = static_cast<T>(write == Write::add ? static_cast<U>(to.data[i]) + by * x.data[i] : by * x.data[i]);
    });
  });
}

// Instantiations in the library, for programs that link it.
#if defined(LOCKSTEP_COMPILED)
#define LOCKSTEP_CONVERT(instantiate, Half)                                                                     \
  instantiate void Convert<HostSpace>::run<float, Half>(Stream stream, Vector<Half const> x, Vector<float> to); \
  instantiate void Convert<HostSpace>::run<Half, float>(Stream stream, Vector<float const> x, Vector<Half> to); \
  instantiate void Convert<HostSpace>::run<Half, float>(Stream stream, Vector<float const> x, Vector<Half> to,  \
                                                        Write write);                                           \
  instantiate void Convert<HostSpace>::run_scaled<Half, float>(Stream stream, Vector<float const> x,            \
                                                               float const* factor, Vector<Half> to, Write write)
LOCKSTEP_CONVERT(extern template, bfloat16);
LOCKSTEP_CONVERT(extern template, float16);
#endif

}}}  // namespace lockstep::kernel
