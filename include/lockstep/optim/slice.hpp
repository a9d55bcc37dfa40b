// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/kernel/touched_rows.hpp>

namespace lockstep::inline LOCKSTEP_ABI::optim {

/// A range of the parameter arena that one step call updates: all of it, a bucket, or a rank's shard. Does not own.
template <class Scalar, class Space>
struct Slice {
  Index offset = 0;                   ///< of the first element in the arena
  Index count = 0;                    ///< elements
  Scalar* values = nullptr;           ///< [count], updated
  Scalar const* gradients = nullptr;  ///< [count], of the loss sum; read once
  Scalar* const* states = nullptr;    ///< one pointer per state, each to [count] elements, zero before step 1; updated
  bfloat16* shadow = nullptr;        ///< [count], receives the new values; null where no product takes them in bfloat16
  bool decays = true;                ///< whether these parameters belong to the group that weight decay applies to
  kernel::TouchedRows touched = {};  ///< where it has bits: the table that the range lies in; gradients of rows that it
                                     ///< does not contain are zero and must not be read
};

}  // namespace lockstep::inline LOCKSTEP_ABI::optim
