// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/index.hpp>

namespace lockstep_bench {

/// Returns `whole`, or `once` in the tests' program, which only shows that each benchmark works.
constexpr lockstep::Index sized([[maybe_unused]] lockstep::Index whole,
                                [[maybe_unused]] lockstep::Index once) noexcept {
#if defined(LOCKSTEP_BENCHMARKS_ONCE)
  return once;
#else
  return whole;
#endif
}

}  // namespace lockstep_bench
