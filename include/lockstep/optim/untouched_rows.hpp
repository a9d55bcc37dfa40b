// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/version.hpp>

namespace lockstep::inline LOCKSTEP_ABI::optim {

/// What a step does to rows that it did not touch, in tables whose gradient goes by rows.
enum class UntouchedRows {
  follow,  ///< what a gradient of zero does: moments shrink, values follow them and decay; equal to dense gradients
  stay,    ///< nothing: much faster for large tables, another algorithm (PyTorch's SparseAdam)
};

/// Whether an optimizer's step changes no row that it did not touch.
template <class Optimizer>
[[nodiscard]] constexpr bool leaves_untouched_rows(Optimizer const& optimizer) noexcept {
  if constexpr (requires { optimizer.untouched_rows; }) return optimizer.untouched_rows == UntouchedRows::stay;
  return false;
}

}  // namespace lockstep::inline LOCKSTEP_ABI::optim
