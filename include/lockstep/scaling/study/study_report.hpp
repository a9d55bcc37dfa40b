// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <lockstep/scaling/study/findings.hpp>
#include <lockstep/scaling/study/study.hpp>
#include <lockstep/scaling/study/study_figures.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

/// Returns a sentence per group, for the first lines of a report.
[[nodiscard]] std::string study_summary(Study const& study);

/// Returns performance_report.txt: the summary, findings with cause, evidence and recommendation, and all tables.
[[nodiscard]] std::string study_text(Study const& study);

/// Returns report.html: one page with all figures as inline SVG, which loads nothing from elsewhere.
[[nodiscard]] std::string study_html(Study const& study);

}}}  // namespace lockstep::scaling

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/scaling/study/study_report.ipp>
#endif
