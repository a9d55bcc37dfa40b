// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include <lockstep/scaling/study/study.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app {

/// Files of a report that were written.
struct StudyFiles {
  std::string html;                 ///< path of the page
  std::vector<std::string> images;  ///< paths of SVG and PNG files
  std::vector<std::string> notes;   ///< what could not be written, and why
};

/// Returns the path of a program on the PATH; empty if there is none.
[[nodiscard]] std::string find_program(std::string const& name);

/// Creates a folder for a report, and checks that files can be written into it.
/// @throws ConfigError with the system's reason
void create_report_folder(std::string const& folder);

/// Writes report.html, performance_report.txt, comprehensive_summary.csv, summary_table.tex, and each figure as SVG
/// and, by gnuplot, as PNG. Files of these names are replaced.
/// @param gnuplot path of the program; if it is empty, a note says how to install it
/// @param latex path of a LaTeX program, which is not started; if it is empty, a note says how to install it
/// @throws ConfigError if the folder cannot be written
[[nodiscard]] StudyFiles write_study_files(scaling::Study const& study, std::string const& folder,
                                           std::string const& gnuplot = find_program("gnuplot"),
                                           std::string const& latex = find_program("pdflatex"));

}}}  // namespace lockstep::app

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/app/study_files.ipp>
#endif
