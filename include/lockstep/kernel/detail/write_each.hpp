// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/index.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Computes to[i] = of(i) for each i in [begin, end), or adds it to to[i]. Call it inside with_best_instructions.
template <class Scalar, class Function>
[[gnu::always_inline]] inline void write_each(Index begin, Index end, Scalar* to, Write write, Function of) noexcept {
  if (write == Write::overwrite) {
    for (Index i = begin; i < end; ++i) to[i] = of(i);
  } else {
    for (Index i = begin; i < end; ++i) to[i] += of(i);
  }
}

}}}  // namespace lockstep::kernel::detail
