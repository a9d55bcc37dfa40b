// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling::detail {

/// Returns a string as the text or an attribute of HTML and SVG. Bytes that are not UTF-8 and control characters become
/// U+FFFD and spaces.
[[nodiscard]] std::string html(std::string_view text);

/// Returns a string as text of LaTeX. Characters beyond Latin Extended-A, which pdflatex's fonts lack, become "?".
[[nodiscard]] std::string latex(std::string_view text);

/// Returns a string as a cell of CSV, quoted if necessary.
[[nodiscard]] std::string csv(std::string_view text);

/// Returns a string as a part of a file's name: letters, digits, ".", "_" and "-"; all else becomes "_".
[[nodiscard]] std::string file_name(std::string_view text);

}}}  // namespace lockstep::scaling::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/scaling/detail/escaped.ipp>
#endif
