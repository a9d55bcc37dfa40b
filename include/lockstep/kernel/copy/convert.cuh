// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <type_traits>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/copy/convert.hpp>
#include <lockstep/kernel/detail/vectorized_access.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version, bit-identical to the host's, queued on the stream.
template <>
struct Convert<CudaSpace> : detail::KernelTypes<CudaSpace> {
  template <class T, class U>
  static void run(Stream stream, Vector<U const> x, Vector<T> to) {
    using Stored = Narrower<T, U>;
    detail::for_vectorized<Stored>(name, stream, x.size(), [=] __device__(detail::WidestAccess<Stored> const& access) {
      Numbers<Stored, Accumulate<T>> numbers;
      access.load_as(x.data, numbers);
      access.put(numbers, to.data);
    });
  }

  template <class T, class U>
  static void run(Stream stream, Vector<U const> x, Vector<T> to, Write write) {
    if (write == Write::overwrite) return run<T, U>(stream, x, to);
    using Stored = Narrower<T, U>;
    detail::for_vectorized<Stored>(name, stream, x.size(), [=] __device__(detail::WidestAccess<Stored> const& access) {
      Numbers<Stored, U> numbers;
      access.load(x.data, numbers);
      access.put(numbers, to.data, Write::add);
    });
  }

  template <class T, class U>
  static void run_scaled(Stream stream, Vector<U const> x, U const* factor, Vector<T> to, Write write) {
    using Stored = Narrower<T, U>;
    detail::for_vectorized<Stored>(name, stream, x.size(), [=] __device__(detail::WidestAccess<Stored> const& access) {
      Numbers<Stored, U> numbers;
      access.load(x.data, numbers);
      for (auto& number : numbers) number = detail::rounded_product(*factor, number);
      access.put(numbers, to.data, write);
    });
  }

 private:
  static constexpr char const* name = "kernel::Convert";

  /// The narrower type, whose adjacent elements fill a thread's access; those of the wider type take several.
  template <class T, class U>
  using Narrower = std::conditional_t<sizeof(T) <= sizeof(U), T, U>;
  template <class Stored, class Number>
  using Numbers = typename detail::WidestAccess<Stored>::template Values<Number>;
};

}}}  // namespace lockstep::kernel
