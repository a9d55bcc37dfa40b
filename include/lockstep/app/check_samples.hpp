// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <lockstep/app/options.hpp>
#include <lockstep/core/error.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app {

/// Checks that each rank and device gets a sample. Call it in a trainer's check function.
/// @throws ConfigError if there are more ranks or devices than samples, with both numbers, or no samples
inline void check_samples(Options const& options, Index samples) {
  if (options.all_devices() <= samples) return;
  if (samples == 0)
    throw ConfigError("there are no training samples" + (options.data.empty() ? "" : " in " + options.data) +
                      "; check the file, and the lengths and limits by which samples are made of it");
  bool const ranks = options.ranks > 1;
  throw ConfigError(std::to_string(options.all_devices()) + (ranks ? " ranks" : " devices") + " for " +
                    std::to_string(samples) + " training samples: some would never get a sample; use at most " +
                    (options.nproc > 1 ? "--nproc " : "--devices ") + std::to_string(samples));
}

}}}  // namespace lockstep::app
