// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <lockstep/core/error.hpp>
#include <lockstep/optim/loss_scaler.hpp>
#include <lockstep/train/observer.hpp>

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

/// What the reports of steps that are logged say of the loss scale. On all ranks, which see the same.
class LossScaleReports {
 public:
  /// @throws Error when no step since the last one that was logged has changed anything, and none will
  template <class Session>
  void add(Session& session, StepReport& report) {
    if constexpr (scales_loss<Session>) {
      if (!report.is_logged()) return;
      auto const state = loss_scale_of(session);
      report.loss_scale = static_cast<double>(state.scale);
      report.skipped_steps = state.skipped;
      constexpr auto least = optim::LossScaler::least;
      bool const all = before_.scale == least && state.skipped - before_.skipped == report.step - step_;
      if (all && state.scale == least)
        throw Error(
            "training: gradients in float16 are not finite although the loss scale is down at 1, so that " +
            std::to_string(state.skipped) + " steps were skipped, the last of them step " +
            std::to_string(report.step) +
            "; scale inputs and targets down, or store activations as bfloat16, or as float32, and send gradients "
            "as either, if they are sent as float16");
      before_ = state;
      step_ = report.step;
    }
  }

 private:
  optim::LossScaler::State before_;
  Index step_ = 0;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::train::detail
