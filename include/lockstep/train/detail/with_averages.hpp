// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <lockstep/nn/parameter_layout.hpp>
#include <lockstep/optim/averaged.hpp>
#include <lockstep/parallel/policy.hpp>

namespace lockstep::inline LOCKSTEP_ABI::train::detail {

/// The averages that a session's optimizer keeps.   @collective where the optimizer is sharded
template <class Optimizer, class Session>
[[nodiscard]] std::vector<float> averages_of(Session& session) {
  auto const* const lag = session.moment(static_cast<std::size_t>(Optimizer::states) - 1);
  std::span<float const> const values = session.values();
  std::vector<float> averages(values.begin(), values.end());
  for (std::size_t i = 0; i < averages.size(); ++i) averages[i] -= lag[i];
  return averages;
}

/// Before parameters take these values: those in which one changes are their own averages from then on.
/// @collective where the optimizer is sharded
template <class Optimizer, class Session>
void average_anew(Session& session, nn::ParameterLayout const& layout, std::span<float const> values) {
  parallel::SessionState state(layout.size(), layout.buffer_size(), Optimizer::states);
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

/// All replicas take these.   @collective where the optimizer keeps averages
template <class Optimizer, class Session>
void set_numbers(Session& session, nn::ParameterLayout const& layout, std::span<float const> values,
                 std::span<float const> buffers) {
  if constexpr (optim::averages<Optimizer>) average_anew<Optimizer>(session, layout, values);
  session.each([&](int, auto& replica) {
    replica.device().enter();
    replica.set_values(values);
    replica.set_buffers(buffers);
  });
}

/// While it lives, all replicas have the averages in place of the values, where the optimizer keeps some. `in_place`
/// says so, for an observer of an evaluation may ask for another one.
/// @collective where the optimizer is sharded
template <class Optimizer, class Session>
class WithAverages {
 public:
  WithAverages(Session& session, bool& in_place) : session_(session), in_place_(in_place), puts_(!in_place) {
    if constexpr (optim::averages<Optimizer>) {
      if (!puts_) return;
      auto const averages = averages_of<Optimizer>(session_);
      std::span<float const> const values = session_.values();
      values_.assign(values.begin(), values.end());
      set(averages);
      in_place_ = true;
    }
  }
  ~WithAverages() {
    if constexpr (optim::averages<Optimizer>) {
      if (!puts_) return;
      in_place_ = false;
      try {
        set(values_);
      } catch (...) {  // a device that is lost, as whoever asks it next is told
      }
    }
  }
  WithAverages(WithAverages const&) = delete;
  WithAverages& operator=(WithAverages const&) = delete;

 private:
  void set(std::vector<float> const& values) {
    session_.each([&](int, auto& replica) {
      replica.device().enter();
      replica.set_values(values);
    });
  }

  Session& session_;
  bool& in_place_;
  bool puts_;
  std::vector<float> values_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::train::detail
