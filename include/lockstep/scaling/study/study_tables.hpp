// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include <lockstep/scaling/study/study.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

/// Table of a report.
struct StudyTable {
  /// Row of a table, and whether its values were measured or predicted.
  struct Row {
    /// Origin of a row.
    enum class Kind {
      measured,   ///< from runs
      predicted,  ///< prediction
      failed,     ///< no result
    };

    std::vector<std::string> cells;  ///< as many as `header`
    Kind kind = Kind::measured;      ///< of this row
  };

  std::string title;                ///< above the table
  std::vector<std::string> header;  ///< names of the columns
  std::vector<Row> rows = {};       ///< in order
  std::string note = {};            ///< below the table

  /// Returns lines of aligned columns.
  [[nodiscard]] std::string text() const;
  /// Returns a table of HTML.
  [[nodiscard]] std::string html() const;
};

/// Returns speed, quality and memory of each configuration. Predicted rows are marked.
[[nodiscard]] StudyTable results_table(StudyGroup const& group);

/// Returns dp next to ddp on each number of devices, and predicted on 8. No rows if dp or ddp is missing.
[[nodiscard]] StudyTable dp_against_ddp_table(StudyGroup const& group);

/// Returns runs that are not in the tables, with reasons.
[[nodiscard]] StudyTable missing_table(Study const& study);

/// Returns all figures of all groups as CSV, one line per configuration; cells without a value are empty.
[[nodiscard]] std::string study_csv(Study const& study);

/// Returns a table environment of LaTeX for the package booktabs; cells without a value are "n/a".
[[nodiscard]] std::string study_latex(Study const& study);

}}}  // namespace lockstep::scaling

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/scaling/study/study_tables.ipp>
#endif
