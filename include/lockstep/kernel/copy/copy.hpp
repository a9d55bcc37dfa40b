// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstring>

#include <lockstep/core/index.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Copies within one space.
template <class Space>
struct Copy : detail::NotIncluded<Space> {};

/// CPU version of the primary template.
template <>
struct Copy<HostSpace> : detail::KernelTypes<HostSpace> {
  /// Computes to[i] = from[i] for i < count, from the values before the call; the two may overlap.
  template <class Scalar>
  static void run(Stream, Scalar const* from, Scalar* to, Index count) {
    if (from != to && count > 0) std::memmove(to, from, static_cast<std::size_t>(count) * sizeof(Scalar));
  }
};

}}}  // namespace lockstep::kernel
