// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/version.hpp>
#include <lockstep/scaling/detail/escaped.hpp>
#include <lockstep/scaling/detail/rounded.hpp>
#include <lockstep/scaling/study/study_report.hpp>
#include <lockstep/scaling/study/study_tables.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

namespace detail {

[[nodiscard]] LOCKSTEP_INLINE std::string gain_of(Finding const& finding) {
  if (!(finding.gain > 0)) return "";
  return std::string(finding.predicted ? "at most about +" : "+") + rounded(100 * finding.gain, 0) + " % samples/s";
}

/// Returns description, baseline and settings of a group.
[[nodiscard]] LOCKSTEP_INLINE std::string about(StudyGroup const& group) {
  return group.description + "." + (group.apart.empty() ? "" : " Shown apart because of: " + group.apart + ".");
}

inline constexpr char style[] =
    "body{font-family:'DejaVu Sans',Verdana,Arial,sans-serif;color:#222;max-width:1080px;margin:24px auto;padding:0 "
    "16px;line-height:1.45}h1{font-size:26px}h2{font-size:20px;margin-top:36px;border-bottom:1px solid #ccc}"
    ".summary{font-size:17px;border-left:5px solid #12467f;padding:6px 12px;background:#f3f6fa}.note{color:#444;"
    "font-size:13px}figure{margin:20px 0;break-inside:avoid}figure svg{max-width:100%;height:auto;border:1px solid "
    "#ddd}figcaption{font-size:13px;color:#444}.wide{overflow-x:auto}table{border-collapse:collapse;font-size:13px;"
    "margin:14px 0}caption{text-align:left;font-weight:bold;padding:4px 0}th,td{padding:3px 7px;text-align:right;"
    "white-space:nowrap;border-bottom:1px solid #ddd}th{border-bottom:2px solid #444;vertical-align:bottom;"
    "white-space:normal}th:first-child,td:first-child,td.text{text-align:left}td.text{white-space:normal}"
    "tr.predicted td{font-style:italic;color:#555;background:#f7f7f7}tr.failed td{background:#fdeceb}ol>li{margin:14px "
    "0}dl{margin:4px 0;display:grid;grid-template-columns:9em 1fr;gap:2px 8px}dt{color:#555}dd{margin:0}.gain{"
    "font-weight:bold;white-space:nowrap}@media print{body{max-width:none}}";

}  // namespace detail

LOCKSTEP_INLINE std::string study_summary(Study const& study) {
  std::string out;
  for (auto const& group : study.groups) out += (out.empty() ? "" : "\n") + group.summary();
  if (study.groups.empty()) out = "No run has a result.";
  return out;
}

LOCKSTEP_INLINE std::string study_text(Study const& study) {
  auto out = study_summary(study) + "\n\n";
  for (auto const& note : study.notes) out += "note: " + note + "\n";
  if (!study.notes.empty()) out += "\n";
  out += "Findings, the most effective first\n==================================\n\n";
  int number = 0;
  for (auto const& finding : findings_of(study)) {
    auto const gain = detail::gain_of(finding);
    out += std::to_string(++number) + ". " + finding.group + ": " + finding.finding +
           (gain.empty() ? "" : " [" + gain + "]") + "\n   cause:          " + finding.cause +
           "\n   evidence:       " + finding.evidence + "\n   recommendation: " + finding.recommendation + "\n\n";
  }
  if (number == 0) out += "none\n\n";
  for (auto const& group : study.groups) {
    out += detail::about(group) + "\n" + results_table(group).text() + "\n";
    if (auto const table = dp_against_ddp_table(group); !table.rows.empty()) out += table.text() + "\n";
  }
  if (auto const table = missing_table(study); !table.rows.empty()) out += table.text() + "\n";
  return out;
}

LOCKSTEP_INLINE std::string study_html(Study const& study) {
  auto const paragraph = [](std::string const& text, char const* kind) {
    return "<p class=\"" + std::string(kind) + "\">" + detail::html(text) + "</p>\n";
  };
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n<title>Scaling report</title>\n<style>" +
      std::string(detail::style) + "</style>\n</head>\n<body>\n<h1>Scaling report</h1>\n";
  if (study.groups.empty()) out += paragraph(study_summary(study), "summary");
  for (auto const& group : study.groups) out += paragraph(group.summary(), "summary");
  for (auto const& note : study.notes) out += paragraph(note, "note");
  std::string recommendations = "<h2>Findings and recommendations</h2>\n<p>The most effective first.</p>\n<ol>\n";
  for (auto const& finding : findings_of(study)) {
    auto const gain = detail::gain_of(finding);
    recommendations += "<li><strong>" + detail::html(finding.group) + ":</strong> " + detail::html(finding.finding) +
                       (gain.empty() ? "" : " <span class=\"gain\">" + gain + "</span>") + "\n<dl><dt>Cause</dt><dd>" +
                       detail::html(finding.cause) + "</dd><dt>Evidence</dt><dd>" + detail::html(finding.evidence) +
                       "</dd><dt>Recommendation</dt><dd>" + detail::html(finding.recommendation) + "</dd></dl></li>\n";
  }
  recommendations += "</ol>\n";
  for (auto const& group : study.groups) {
    out += "<h2>" + detail::html(group.title) + "</h2>\n" + paragraph(detail::about(group), "note");
    for (auto const& figure : study_figures(group))
      out += "<figure>\n" + figure.drawing.svg() + "<figcaption>" + detail::html(figure.caption) +
             "</figcaption>\n</figure>\n";
    out += results_table(group).html();
    if (auto const table = dp_against_ddp_table(group); !table.rows.empty()) out += table.html();
  }
  out += recommendations;
  if (auto const table = missing_table(study); !table.rows.empty())
    out += "<h2>Runs without a result</h2>\n" + table.html();
  return out + "<p class=\"note\">Written by Lockstep " + detail::html(version) + ".</p>\n</body>\n</html>\n";
}

}}}  // namespace lockstep::scaling
