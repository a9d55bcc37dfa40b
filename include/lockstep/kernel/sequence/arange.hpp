// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <numeric>

#include <lockstep/kernel/detail/kernel_types.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Consecutive numbers.
template <class Space>
struct Arange : detail::NotIncluded<Space> {};

/// CPU version of the primary template.
template <>
struct Arange<HostSpace> : detail::KernelTypes<HostSpace> {
  /// Computes to[i] = first + i.
  /// @shape to [n]   @determinism bitwise
  static void fill(Stream, std::int32_t first, Vector<std::int32_t> to) noexcept {
    std::iota(to.data, to.data + to.size(), first);
  }
};

}}}  // namespace lockstep::kernel
