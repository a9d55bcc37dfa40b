// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/index.hpp>

namespace lockstep::inline LOCKSTEP_ABI::optim {

/// A range of the parameter arena that one step call updates: all of it, a bucket, or a rank's shard. Does not own.
template <class Scalar, class Space>
struct Slice {
  Index offset = 0;                   ///< of the first element in the arena
  Index count = 0;                    ///< elements
  Scalar* values = nullptr;           ///< [count], updated
  Scalar const* gradients = nullptr;  ///< [count], of the loss sum; read once
  Scalar* const* states = nullptr;    ///< one pointer per state, each to [count] elements, zero before step 1; updated
};

}  // namespace lockstep::inline LOCKSTEP_ABI::optim
