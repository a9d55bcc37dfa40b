// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Effect of an update on a session's replicas: it copies the first replica's values to all, or updates each replica.
enum class Updates { make_alike, leave_apart };

/// Compares the replicas of a session whose updates have this effect, if the session can compare. Sessions that copy
/// values compare before the update, when replicas still have the values they computed with. `step` is their last step.
template <class Session>
void compare_replicas(Session& session, Updates updates, Index step) {
  if constexpr (requires { session.check_replicas(step); })
    if (updates == (Session::update_copies_parameters ? Updates::make_alike : Updates::leave_apart))
      session.check_replicas(step);
}

}}}  // namespace lockstep::train::detail
