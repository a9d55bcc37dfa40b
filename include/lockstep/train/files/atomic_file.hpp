// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/atomic_file.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

using lockstep::AtomicFile;

}}}  // namespace lockstep::train
