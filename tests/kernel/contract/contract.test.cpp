// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/contract/contract.hpp>

#include <doctest/doctest.h>

using namespace lockstep;

namespace {
/// A space with two kernels, of which one lacks a function.
struct HalfSpace {
  static constexpr bool host_accessible = true;
};
}  // namespace

namespace lockstep { inline namespace LOCKSTEP_ABI {
template <>
class memory::Stream<HalfSpace> {};
template <>
struct kernel::Softmax<HalfSpace> : kernel::detail::KernelTypes<HalfSpace> {
  template <class T>
  static void forward(Stream, Matrix<T const>, Matrix<T>) {}
};
template <>
struct kernel::DotByRow<HalfSpace> : kernel::detail::KernelTypes<HalfSpace> {
  template <class T>
  static void forward(Stream, Matrix<T const>, Matrix<T const>, Vector<T>) {}
  template <class T>
  static void backward(Stream, Vector<T const>, Matrix<T const>, Matrix<T>, Write) {}
};
}}  // namespace lockstep

TEST_CASE("the host offers the functions of every kernel") {
  static_assert(kernel::has_all_kernels<HostSpace>());
  CHECK(kernel::HasLinear<HostSpace>);
}

TEST_CASE("a kernel that lacks a function differs from the contract") {
  CHECK(kernel::HasDotByRow<HalfSpace>);
  CHECK_FALSE(kernel::HasSoftmax<HalfSpace>);
}
