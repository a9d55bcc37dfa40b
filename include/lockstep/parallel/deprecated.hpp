// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/version.hpp>
#include <lockstep/parallel/policy.hpp>

/// Former names of this folder's types, until the next version.
namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel {

using FloatProducts [[deprecated("parallel::MatmulPrecision")]] = MatmulPrecision;

}}}  // namespace lockstep::parallel
