// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/optim/slice.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace optim {

/// Old names, for one version. `UntouchedRows` has its old enumerators.
using Shadow [[deprecated("optim::HalfPrecisionCopy")]] = HalfPrecisionCopy;

}}}  // namespace lockstep::optim
