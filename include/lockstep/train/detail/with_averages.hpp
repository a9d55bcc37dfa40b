// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include <lockstep/optim/averaged.hpp>

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

/// While it lives, all replicas have the averages in place of the values, where the optimizer keeps some.
/// @collective where the optimizer is sharded
template <class Optimizer, class Session>
class WithAverages {
 public:
  explicit WithAverages(Session& session) : session_(session) {
    if constexpr (optim::averages<Optimizer>) {
      auto const averages = averages_of<Optimizer>(session_);
      std::span<float const> const values = session_.values();
      values_.assign(values.begin(), values.end());
      set(averages);
    }
  }
  ~WithAverages() {
    if constexpr (optim::averages<Optimizer>) {
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
  std::vector<float> values_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::train::detail
