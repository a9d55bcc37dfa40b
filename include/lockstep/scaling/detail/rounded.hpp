// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling::detail {

/// Returns a number with `digits` decimals, with a point in any locale. Numbers that need more than 60 characters are
/// written as by shortest().
[[nodiscard]] std::string rounded(double value, int digits);

/// Returns a number with at most `digits` significant digits, likewise.
[[nodiscard]] std::string significant(double value, int digits);

}}}  // namespace lockstep::scaling::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/scaling/detail/rounded.ipp>
#endif
