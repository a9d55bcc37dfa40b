// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel {

/// Treatment of buffers, for example running statistics, before an evaluation. During training each replica updates its
/// buffers from its own samples. Checkpoints hold the first replica's buffers.
enum class BufferPolicy {
  first,  ///< all replicas copy the first replica's buffers
  mean,   ///< all replicas get the elementwise mean; a mean of variances is smaller than the overall variance
  own,    ///< each replica keeps its own, so evaluation uses a different model on each
};

}}}  // namespace lockstep::parallel
