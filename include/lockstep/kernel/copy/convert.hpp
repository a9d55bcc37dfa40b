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

/// CPU version of the primary template.
template <>
struct Convert<HostSpace> : detail::KernelTypes<HostSpace> {
  /// Computes to[i] = x[i].
  /// @shape x, to [n]
  /// @determinism bitwise, for any number of threads
  template <class Scalar, class Other>
  static void run(Stream stream, Vector<Other const> x, Vector<Scalar> to);

  /// Computes to[i] = x[i], or adds x[i] to to[i]. The sum is in Other until it is rounded.
  /// @shape x, to [n]
  template <class Scalar, class Other>
  static void run(Stream stream, Vector<Other const> x, Vector<Scalar> to, Write write);

  /// Computes the conversion of factor * x[i] like `run`. The factor is in the memory of the space, and is read when
  /// the work runs.
  template <class Scalar, class Other>
  static void run_scaled(Stream stream, Vector<Other const> x, Other const* factor, Vector<Scalar> to, Write write);
};

template <class Scalar, class Other>
void Convert<HostSpace>::run(Stream stream, Vector<Other const> x, Vector<Scalar> to) {
  stream.pool().for_ranges(x.size(), 8192, [=](Index begin, Index end) {
    if (detail::convert_float16(x.data + begin, to.data + begin, end - begin)) return;
    with_best_instructions([=] {
      for (Index i = begin; i < end; ++i) to.data[i] = static_cast<Scalar>(static_cast<Accumulate<Scalar>>(x.data[i]));
    });
  });
}

template <class Scalar, class Other>
void Convert<HostSpace>::run(Stream stream, Vector<Other const> x, Vector<Scalar> to, Write write) {
  if (write == Write::overwrite) return run<Scalar, Other>(stream, x, to);
  stream.pool().for_ranges(x.size(), 8192, [=](Index begin, Index end) {
    with_best_instructions([=] {
      for (Index i = begin; i < end; ++i) to.data[i] = static_cast<Scalar>(static_cast<Other>(to.data[i]) + x.data[i]);
    });
  });
}

template <class Scalar, class Other>
void Convert<HostSpace>::run_scaled(Stream stream, Vector<Other const> x, Other const* factor, Vector<Scalar> to,
                                    Write write) {
  stream.pool().for_ranges(x.size(), 8192, [=, by = *factor](Index begin, Index end) {
    with_best_instructions([=] {
      for (Index i = begin; i < end; ++i)
        to.data[i] =
            static_cast<Scalar>(write == Write::add ? static_cast<Other>(to.data[i]) + by * x.data[i] : by * x.data[i]);
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
