// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// What an update does to a session's replicas: gives them the first one's values, or updates each by itself.
enum class Updates { make_alike, leave_apart };

/// Compares the replicas of a session whose updates do this, if it can. Those that an update would give the first one's
/// values still have what they computed with before it; `step` is the last one that they have made.
template <class Session>
void compare_replicas(Session& session, Updates updates, Index step) {
  if constexpr (requires { session.check_replicas(step); })
    if (updates == (Session::update_makes_alike ? Updates::make_alike : Updates::leave_apart))
      session.check_replicas(step);
}

}}}  // namespace lockstep::train::detail
