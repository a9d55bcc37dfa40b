// SPDX-License-Identifier: Apache-2.0
// CASE no_backward: Lockstep: this space's kernel::Softmax differs from kernel/contract/contract.hpp
// CASE other_arguments: Lockstep: this space's kernel::Softmax differs from kernel/contract/contract.hpp
#include <lockstep/kernel/contract/contract.hpp>

using namespace lockstep;

/// A space whose kernels are the host's, except one.
struct OtherSpace {
  static constexpr bool host_accessible = true;
};

namespace lockstep { inline namespace LOCKSTEP_ABI {
template <>
class memory::Stream<OtherSpace> {};
template <>
struct kernel::Softmax<OtherSpace> : kernel::detail::KernelTypes<OtherSpace> {
  template <class T>
  static void forward(Stream, Matrix<T const>, Matrix<T>) {}
#if !defined(CASE_no_backward)
  template <class T>
#if defined(CASE_other_arguments)
  static void backward(Stream, Matrix<T const>, Matrix<T>, Write) {
  }
#else
  static void backward(Stream, Matrix<T const>, Matrix<T const>, Matrix<T>, Write) {
  }
#endif
#endif
};
}}  // namespace lockstep

static_assert(kernel::HasSoftmax<OtherSpace>,
              "Lockstep: this space's kernel::Softmax differs from kernel/contract/contract.hpp");
static_assert(kernel::has_all_kernels<HostSpace>());
