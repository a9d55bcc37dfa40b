// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/train/trainer/detail/averaged_parameters.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_COLD_INLINE std::vector<float> averaged_values(parallel::AnySession& session) {
  auto const lag = session.moment(session.kind().states - 1);
  std::span<float const> const values = session.values();
  std::vector<float> averages(values.begin(), values.end());
  for (std::size_t i = 0; i < lag.size(); ++i) averages[i] -= lag[i];
  return averages;
}

LOCKSTEP_COLD_INLINE void restart_averages(parallel::AnySession& session, nn::ParameterLayout const& layout,
                                           std::span<float const> values) {
  parallel::SessionState state(layout.size(), layout.buffer_size(), static_cast<int>(session.kind().states));
  std::span<float const> const before = session.values(), buffers = session.buffers();
  std::copy(before.begin(), before.end(), state.values().begin());
  std::copy(buffers.begin(), buffers.end(), state.buffers().begin());
  for (std::size_t i = 0; i < state.states(); ++i) {
    auto const moment = session.moment(i);
    std::copy(moment.begin(), moment.end(), state.moments(i).begin());
  }
  auto const lag = state.moments(state.states() - 1);
  for (auto const& entry : layout.entries()) {
    auto const at = static_cast<std::size_t>(entry.offset), size = static_cast<std::size_t>(entry.size);
    auto const now = values.subspan(at, size);
    if (!std::equal(now.begin(), now.end(), before.begin() + entry.offset))
      std::fill_n(lag.begin() + entry.offset, size, 0.0f);
  }
  session.restore(state);
}

LOCKSTEP_COLD_INLINE void set_values_and_buffers(parallel::AnySession& session, nn::ParameterLayout const& layout,
                                                 std::span<float const> values, std::span<float const> buffers) {
  if (session.kind().averages) restart_averages(session, layout, values);
  session.set_values(values);
  session.set_buffers(buffers);
}

LOCKSTEP_COLD_INLINE AveragedParameters::AveragedParameters(parallel::AnySession& session, bool& in_place)
    : session_(session), in_place_(in_place), active_(session.kind().averages && !in_place) {
  if (!active_) return;
  auto const averages = averaged_values(session_);
  std::span<float const> const values = session_.values();
  values_.assign(values.begin(), values.end());
  session_.set_values(averages);
  in_place_ = true;
}

LOCKSTEP_COLD_INLINE AveragedParameters::~AveragedParameters() {
  if (!active_) return;
  in_place_ = false;
  try {
    session_.set_values(values_);
  } catch (...) {  // a lost device, which its next call reports
  }
}

}}}  // namespace lockstep::train::detail
