// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/version.hpp>

namespace lockstep::inline LOCKSTEP_ABI::parallel {

/// What becomes of the buffers (running statistics, say), which each replica fills by its own samples, before an
/// evaluation. The first replica's are those that are saved.
enum class BufferPolicy {
  first,  ///< every replica takes those of the first
  mean,   ///< every replica takes the mean over all, element by element; of variances that is less than the variance
  own,    ///< each keeps its own: samples are then evaluated by unlike models
};

}  // namespace lockstep::inline LOCKSTEP_ABI::parallel
