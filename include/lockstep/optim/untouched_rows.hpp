// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace optim {

/// Effect of a step on rows that it did not touch, in tables whose gradient is stored by rows.
enum class UntouchedRows {
  update,  ///< as with a gradient of zero: moments shrink, values follow them and decay; equal to dense gradients
  skip,    ///< none: much faster for large tables, a different algorithm (PyTorch's SparseAdam)
  follow [[deprecated("UntouchedRows::update")]] = update,  ///< deprecated: use update
  stay [[deprecated("UntouchedRows::skip")]] = skip,        ///< deprecated: use skip
};

/// Returns whether an optimizer's step leaves all untouched rows unchanged.
template <class Optimizer>
[[nodiscard]] constexpr bool leaves_untouched_rows(Optimizer const& optimizer) noexcept {
  if constexpr (requires { optimizer.untouched_rows; }) return optimizer.untouched_rows == UntouchedRows::skip;
  return false;
}

}}}  // namespace lockstep::optim
