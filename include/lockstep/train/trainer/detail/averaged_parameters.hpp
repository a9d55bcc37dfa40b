// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/parallel/policy.hpp>
#include <lockstep/train/trainer/detail/any_session.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Returns the averages that a session's optimizer keeps.   @collective if the optimizer is sharded
[[nodiscard]] inline std::vector<float> averaged_values(AnySession& session) {
  auto const* const lag = session.moment(session.kind().states - 1);
  std::span<float const> const values = session.values();
  std::vector<float> averages(values.begin(), values.end());
  for (std::size_t i = 0; i < averages.size(); ++i) averages[i] -= lag[i];
  return averages;
}

/// Restarts the averages of those parameters that differ from `values`, before the session takes these values.
/// @collective if the optimizer is sharded
inline void restart_averages(AnySession& session, nn::ParameterLayout const& layout, std::span<float const> values) {
  parallel::SessionState state(layout.size(), layout.buffer_size(), static_cast<int>(session.kind().states));
  std::span<float const> const before = session.values(), buffers = session.buffers();
  std::copy(before.begin(), before.end(), state.values().begin());
  std::copy(buffers.begin(), buffers.end(), state.buffers().begin());
  for (std::size_t i = 0; i < state.states(); ++i)
    std::copy_n(session.moment(i), before.size(), state.moments(i).data());
  auto const lag = state.moments(state.states() - 1);
  for (auto const& entry : layout.entries()) {
    auto const at = static_cast<std::size_t>(entry.offset), size = static_cast<std::size_t>(entry.size);
    auto const now = values.subspan(at, size);
    if (!std::equal(now.begin(), now.end(), before.begin() + entry.offset))
      std::fill_n(lag.begin() + entry.offset, size, 0.0f);
  }
  session.restore(state);
}

/// Sets the values and buffers of all replicas.   @collective if the optimizer keeps averages
inline void set_values_and_buffers(AnySession& session, nn::ParameterLayout const& layout,
                                   std::span<float const> values, std::span<float const> buffers) {
  if (session.kind().averages) restart_averages(session, layout, values);
  session.set_values(values);
  session.set_buffers(buffers);
}

/// Guard that replaces the parameters of all replicas with their averages, if the optimizer keeps any. It sets
/// `in_place`, so that an evaluation by an observer within an evaluation does not replace them twice.
/// @collective if the optimizer is sharded
class AveragedParameters {
 public:
  AveragedParameters(AnySession& session, bool& in_place)
      : session_(session), in_place_(in_place), active_(session.kind().averages && !in_place) {
    if (!active_) return;
    auto const averages = averaged_values(session_);
    std::span<float const> const values = session_.values();
    values_.assign(values.begin(), values.end());
    session_.set_values(averages);
    in_place_ = true;
  }
  ~AveragedParameters() {
    if (!active_) return;
    in_place_ = false;
    try {
      session_.set_values(values_);
    } catch (...) {  // a lost device, which its next call reports
    }
  }
  AveragedParameters(AveragedParameters const&) = delete;
  AveragedParameters& operator=(AveragedParameters const&) = delete;

 private:
  AnySession& session_;
  bool& in_place_;
  bool active_;
  std::vector<float> values_;
};

}}}  // namespace lockstep::train::detail
