// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/parallel/policy.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel {

LOCKSTEP_INLINE int threads_per_device(int asked, int devices) {
  if (asked < 0)
    throw ConfigError("parallel policy: threads is " + std::to_string(asked) +
                      "; it must be at least 0, and 0 shares the cores equally");
  if (asked > 0) return asked;
  return std::max(1, processors() / std::max(1, devices));
}

LOCKSTEP_INLINE int threads_per_rank(int asked, int ranks) {
  if (asked != 0) return threads_per_device(asked, ranks);
  auto const place = launch::detect();
  return std::max(1, launch::cores_of_ranks(place) / std::max(1, place.size > 1 ? place.local_size : ranks));
}

LOCKSTEP_INLINE char const* name_of(double PhaseSeconds::*phase) noexcept {
  if (phase == &PhaseSeconds::forward) return "forward";
  if (phase == &PhaseSeconds::backward) return "backward";
  if (phase == &PhaseSeconds::communication) return "communication";
  return phase == &PhaseSeconds::optimizer ? "optimizer" : "forward and backward";
}

LOCKSTEP_INLINE SessionState::SessionState(Index parameters, Index buffers, int states)
    : parameters_(static_cast<std::size_t>(parameters)),
      states_(static_cast<std::size_t>(states)),
      numbers_((1 + states_) * parameters_ + static_cast<std::size_t>(buffers)) {}

LOCKSTEP_INLINE std::span<float> SessionState::moments(std::size_t i) noexcept {
  return numbers().subspan((1 + i) * parameters_, parameters_);
}

}}}  // namespace lockstep::parallel
