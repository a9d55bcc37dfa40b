// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <lockstep/core/version.hpp>
#include <lockstep/parallel/policy.hpp>
#include <lockstep/parallel/policy/reproducible.hpp>

/// Former names of this folder's types and functions, until the next version.
namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel {

using FloatProducts [[deprecated("parallel::MatmulPrecision")]] = MatmulPrecision;

[[nodiscard, deprecated("parallel::shard_count_error")]] inline std::string why_not_dealt(int shards, int devices) {
  return shard_count_error(shards, devices);
}

}}}  // namespace lockstep::parallel
