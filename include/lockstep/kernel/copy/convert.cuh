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
  template <class Scalar, class Other>
  static void run(Stream stream, Vector<Other const> x, Vector<Scalar> to) {
    using Stored = Narrower<Scalar, Other>;
    detail::for_vectorized<Stored>(name, stream, x.size(), [=] __device__(detail::WidestAccess<Stored> const& access) {
      Numbers<Stored, Accumulate<Scalar>> numbers;
      access.load_as(x.data, numbers);
      access.put(numbers, to.data);
    });
  }

  template <class Scalar, class Other>
  static void run(Stream stream, Vector<Other const> x, Vector<Scalar> to, Write write) {
    if (write == Write::overwrite) return run<Scalar, Other>(stream, x, to);
    using Stored = Narrower<Scalar, Other>;
    detail::for_vectorized<Stored>(name, stream, x.size(), [=] __device__(detail::WidestAccess<Stored> const& access) {
      Numbers<Stored, Other> numbers;
      access.load(x.data, numbers);
      access.put(numbers, to.data, Write::add);
    });
  }

  template <class Scalar, class Other>
  static void run_scaled(Stream stream, Vector<Other const> x, Other const* factor, Vector<Scalar> to, Write write) {
    using Stored = Narrower<Scalar, Other>;
    detail::for_vectorized<Stored>(name, stream, x.size(), [=] __device__(detail::WidestAccess<Stored> const& access) {
      Numbers<Stored, Other> numbers;
      access.load(x.data, numbers);
      for (auto& number : numbers) number = detail::rounded_product(*factor, number);
      access.put(numbers, to.data, write);
    });
  }

 private:
  static constexpr char const* name = "kernel::Convert";

  /// The narrower type, whose adjacent elements fill a thread's access; those of the wider type take several.
  template <class Scalar, class Other>
  using Narrower = std::conditional_t<sizeof(Scalar) <= sizeof(Other), Scalar, Other>;
  template <class Stored, class Number>
  using Numbers = typename detail::WidestAccess<Stored>::template Values<Number>;
};

}}}  // namespace lockstep::kernel
