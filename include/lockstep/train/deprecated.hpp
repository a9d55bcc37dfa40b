// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/version.hpp>
#include <lockstep/train/logs/observer.hpp>

/// Former names of this folder's types, until the next version.
namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

using StepsMade [[deprecated("train::ProgressCallback")]] = ProgressCallback;

}}}  // namespace lockstep::train
