// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Returns a string as a quoted CSV cell.
[[nodiscard]] std::string csv_quoted(std::string const& text);

/// Returns a string as a CSV cell, quoted only if necessary.
[[nodiscard]] std::string csv_cell(std::string const& text);

}}}  // namespace lockstep::train::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/detail/csv_quoted.ipp>
#endif
