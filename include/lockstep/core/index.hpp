// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// Type of every count, extent and position. Signed, so that differences and checks are ordinary arithmetic.
using Index = std::int64_t;

}}  // namespace lockstep
