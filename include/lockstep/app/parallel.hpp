// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app {

/// Value of --parallel: the policy that trains.
enum class Parallel {
  single,  ///< parallel::SingleDevice
  dp,      ///< parallel::DataParallel
  ddp,     ///< parallel::DistributedDataParallel
};

/// Returns the flag's word, as in run.json.
[[nodiscard]] constexpr char const* name(Parallel parallel) noexcept {
  switch (parallel) {
    case Parallel::single:
      return "single";
    case Parallel::dp:
      return "dp";
    case Parallel::ddp:
      return "ddp";
  }
  return "";
}

}}}  // namespace lockstep::app
