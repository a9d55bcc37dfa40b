// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/version.hpp>

namespace lockstep::inline LOCKSTEP_ABI::optim {

/// What a step does to rows that it did not touch, in tables whose gradient goes by rows.
enum class UntouchedRows {
  follow,  ///< what a gradient of zero does: moments shrink, values follow them and decay; equal to dense gradients
  stay,    ///< nothing: much faster for large tables, another algorithm (PyTorch's SparseAdam)
};

}  // namespace lockstep::inline LOCKSTEP_ABI::optim
