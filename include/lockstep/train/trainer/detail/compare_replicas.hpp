// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Time of a comparison, relative to an update.
enum class ComparisonTime { before_update, after_update };

/// Compares a session's replicas if this is its time. Sessions whose update copies
/// the first replica's values to all compare before it, when replicas still have the values that they computed with.
/// Other sessions compare after it. `step` is the last step of the compared replicas.
template <class Session>
void compare_replicas(Session& session, ComparisonTime time, Index step) {
  if (time == (Session::update_copies_parameters ? ComparisonTime::before_update : ComparisonTime::after_update))
    session.check_replicas(step);
}

}}}  // namespace lockstep::train::detail
