// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/optim/loss_scaler.hpp>

namespace lockstep::inline LOCKSTEP_ABI::train::detail {

template <class Session>
inline constexpr bool scales_loss = Session::DeviceReplica::scales_loss;

/// What all replicas of a session have alike, or nothing. Waits for a device.
template <class Session>
[[nodiscard]] optim::LossScaler::State loss_scale_of(Session& session) {
  optim::LossScaler::State state;
  if constexpr (scales_loss<Session>)
    session.each([&](int shard, auto& replica) {
      if (shard == 0) state = replica.loss_scale().get(replica.device());
    });
  return state;
}

template <class Session>
void set_loss_scale(Session& session, optim::LossScaler::State const& state) {
  if constexpr (scales_loss<Session>)
    session.each([&](int, auto& replica) { replica.loss_scale().set(replica.device(), state); });
}

/// Sets it before the first step.   @throws ConfigError when one of the scaler's numbers is out of range
template <class Session>
void begin_loss_scale(Session& session, optim::LossScaler const& scaler, bool first) {
  if constexpr (scales_loss<Session>) {
    scaler.check();
    if (first) set_loss_scale(session, scaler.begin());
  }
}

}  // namespace lockstep::inline LOCKSTEP_ABI::train::detail
