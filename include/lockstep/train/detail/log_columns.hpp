// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Names of the values of steps and evaluations in logs. The evaluation's metrics follow them.
inline constexpr std::array log_columns{
    "kind",    "step",       "epoch",         "loss",         "learning_rate", "samples", "samples_per_second",
    "seconds", "loss_scale", "skipped_steps", "gradient_norm"};

}}}  // namespace lockstep::train::detail
