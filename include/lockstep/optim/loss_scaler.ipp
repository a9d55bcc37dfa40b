// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <bit>
#include <string>

#include <lockstep/core/error.hpp>
#include <lockstep/core/shortest.hpp>
#include <lockstep/optim/loss_scaler.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace optim {

namespace detail {

inline void check_power_of_two(char const* name, double value, double from, double to) {
  bool const is_power = (std::bit_cast<std::uint64_t>(value) << 12) == 0;
  if (is_power && value >= from && value <= to) return;
  throw ConfigError("LossScaler: " + std::string(name) + " is " + shortest(value) + "; it must be a power of two " +
                    (to < 1 ? "from 2^-64 to 1/2" : "from 1 to 2^64"));
}

}  // namespace detail

LOCKSTEP_INLINE void LossScaler::check() const {
  detail::check_power_of_two("start", start, 1, static_cast<double>(most));
  detail::check_power_of_two("growth", growth, 1, static_cast<double>(most));
  detail::check_power_of_two("backoff", backoff, 0x1p-64, 0.5);
  if (growth_interval < 1 || growth_interval > 1'000'000'000)
    throw ConfigError("LossScaler: growth_interval is " + std::to_string(growth_interval) +
                      " steps; it must be from 1 to 1000000000");
}

}}}  // namespace lockstep::optim
