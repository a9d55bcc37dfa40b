// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>

#include <lockstep/core/utf8.hpp>
#include <lockstep/memory/space.hpp>
#include <lockstep/scaling/detail/escaped.hpp>
#include <lockstep/scaling/detail/rounded.hpp>
#include <lockstep/scaling/study/study_tables.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

namespace detail {

/// Returns mean and spread with `digits` decimals.
[[nodiscard]] LOCKSTEP_INLINE std::string figure(Statistic const& value, int digits, char const* plus_minus = " ± ") {
  if (!value.is_known()) return "n/a";
  auto text = rounded(value.mean, digits);
  if (value.count > 1) text += plus_minus + rounded(value.deviation, digits);
  return text;
}

/// Decimals for about three significant digits of a value.
[[nodiscard]] LOCKSTEP_INLINE int digits_of(double value) {
  auto const size = std::abs(value);
  return std::isnan(value) || size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;
}

[[nodiscard]] LOCKSTEP_INLINE std::size_t characters(std::string_view text) {
  std::size_t count = 0;
  for (; !text.empty(); ++count) text.remove_prefix(std::max<std::size_t>(1, utf8_length(text)));
  return count;
}

[[nodiscard]] LOCKSTEP_INLINE std::string megabytes(double bytes) {
  return std::isnan(bytes) ? "n/a" : rounded(bytes / 1e6, 1);
}

/// Returns the configurations of a group, then its predicted ones.
[[nodiscard]] LOCKSTEP_INLINE std::vector<Configuration const*> rows_of(StudyGroup const& group) {
  std::vector<Configuration const*> out;
  if (group.baseline_kind == BaselineKind::predicted) out.push_back(&group.baseline);
  for (auto const* const list : {&group.configurations, &group.predicted})
    for (auto const& one : *list) out.push_back(&one);
  return out;
}

[[nodiscard]] LOCKSTEP_INLINE StudyTable::Row::Kind kind_of(Configuration const& one) {
  return one.predicted     ? StudyTable::Row::Kind::predicted
         : one.has_speed() ? StudyTable::Row::Kind::measured
                           : StudyTable::Row::Kind::failed;
}

}  // namespace detail

LOCKSTEP_INLINE std::string StudyTable::text() const {
  std::vector<std::size_t> widths;
  for (auto const& name : header) widths.push_back(detail::characters(name));
  for (auto const& row : rows)
    for (std::size_t i = 0; i < row.cells.size() && i < widths.size(); ++i)
      if (i + 1 < row.cells.size() || row.cells.size() == header.size())
        widths[i] = std::max(widths[i], detail::characters(row.cells[i]));
  auto const line = [&](std::vector<std::string> const& cells) {
    std::string out;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      std::string const padding(widths[i] - std::min(widths[i], detail::characters(cells[i])), ' ');
      out += (i == 0 ? "" : "  ") + (i == 0 || i + 1 == cells.size() ? cells[i] + padding : padding + cells[i]);
    }
    while (out.ends_with(' ')) out.pop_back();
    return out + "\n";
  };
  auto out = title + "\n" + line(header);
  for (auto const& row : rows) out += line(row.cells);
  return note.empty() ? out : out + note + "\n";
}

LOCKSTEP_INLINE std::string StudyTable::html() const {
  std::string out = "<div class=\"wide\"><table>\n<caption>" + detail::html(title) + "</caption>\n<thead><tr>";
  for (auto const& name : header) out += "<th>" + detail::html(name) + "</th>";
  out += "</tr></thead>\n<tbody>\n";
  for (auto const& row : rows) {
    out += row.kind == Row::Kind::measured    ? "<tr>"
           : row.kind == Row::Kind::predicted ? "<tr class=\"predicted\">"
                                              : "<tr class=\"failed\">";
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      bool const rest = i + 1 == row.cells.size() && row.cells.size() < header.size();
      out += (rest ? "<td class=\"text\" colspan=\"" + std::to_string(header.size() - i) + "\">" : "<td>") +
             detail::html(row.cells[i]) + "</td>";
    }
    out += "</tr>\n";
  }
  out += "</tbody></table></div>\n";
  return note.empty() ? out : out + "<p class=\"note\">" + detail::html(note) + "</p>\n";
}

LOCKSTEP_INLINE StudyTable results_table(StudyGroup const& group) {
  StudyTable table{.title = "Results: " + group.title,
                   .header = {"run", "devices", "runs", "epoch s", "samples/s", "speed-up", "efficiency %",
                              group.metric, "eval loss", "first device MB", "other devices MB", "source"}};
  bool engines = false, predicted = false;
  std::string engine;  // of the first ddp run
  for (auto const& one : group.configurations)
    if (one.parallel == "ddp" && !one.engine.empty()) {
      engines |= !engine.empty() && one.engine != engine;
      engine = one.engine;
    }
  for (auto const* const one : detail::rows_of(group)) {
    auto name = one->parallel;
    if (engines && one->parallel == "ddp" && !one->engine.empty()) name += " (" + one->engine + ")";
    if (!one->has_speed()) {
      table.rows.push_back(
          {{name, std::to_string(one->devices), "failed: " + one->message}, StudyTable::Row::Kind::failed});
      continue;
    }
    predicted |= one->predicted;
    auto count = one->predicted ? "-" : std::to_string(one->runs.size());
    if (one->failed > 0) count += " (" + std::to_string(one->failed) + " failed)";
    table.rows.push_back({{name, std::to_string(one->devices), count,
                           detail::figure(one->epoch_seconds, detail::digits_of(one->epoch_seconds.mean)),
                           detail::figure(one->samples_per_second, 1), detail::figure(one->speed_up, 2),
                           detail::figure(one->efficiency.times(100), 0), detail::figure(one->metric, 4),
                           detail::figure(one->loss, 4), detail::megabytes(one->first_device_bytes),
                           detail::megabytes(one->other_devices_bytes), one->predicted ? "predicted" : "measured"},
                          detail::kind_of(*one)});
  }
  table.note = group.baseline_summary();
  if (predicted)
    table.note += " Predicted rows are not measured: devices with processors of their own, messages of " +
                  detail::rounded(group.fabric.latency_seconds * 1e6, 1) + " us and " +
                  detail::rounded(1e-9 / group.fabric.seconds_per_byte, 2) +
                  " GB/s. Their memory is that of the largest measured run of the policy." +
                  (group.any_run().backend == HostSpace::name
                       ? " They leave out what devices of one host share: caches, memory bandwidth and clock."
                       : "");
  return table;
}

LOCKSTEP_INLINE StudyTable dp_against_ddp_table(StudyGroup const& group) {
  StudyTable table{
      .title = "DataParallel against DistributedDataParallel: " + group.title,
      .header = {"devices", "dp speed-up", "ddp speed-up", "dp efficiency %", "ddp efficiency %", "dp first MB",
                 "dp others MB", "ddp MB", "parameters", "dp " + group.metric, "ddp " + group.metric, "source"}};
  std::set<Index> counts;
  for (auto const* const one : detail::rows_of(group))
    if (one->has_speed() && one->parallel != "single" && one->devices > 1) counts.insert(one->devices);
  bool both = false;
  for (auto const n : counts) {
    auto const *dp = group.find("dp", n), *ddp = group.find("ddp", n);
    Configuration const none;
    auto const &a = dp ? *dp : none, &b = ddp ? *ddp : none;
    bool const predicted = a.predicted || b.predicted;
    both |= a.has_speed() && b.has_speed() && !predicted;
    auto const source = !predicted                   ? "measured"
                        : a.predicted && b.predicted ? "predicted"
                        : a.predicted                ? "dp predicted"
                                                     : "ddp predicted";
    table.rows.push_back({{std::to_string(n), detail::figure(a.speed_up, 2), detail::figure(b.speed_up, 2),
                           detail::figure(a.efficiency.times(100), 0), detail::figure(b.efficiency.times(100), 0),
                           detail::megabytes(a.first_device_bytes), detail::megabytes(a.other_devices_bytes),
                           detail::megabytes(std::fmax(b.first_device_bytes, b.other_devices_bytes)),
                           group.parameters_equal(n), detail::figure(a.metric, 4), detail::figure(b.metric, 4), source},
                          predicted ? StudyTable::Row::Kind::predicted : StudyTable::Row::Kind::measured});
  }
  if (!both) table.rows.clear();
  table.note =
      "Memory is the peak of parameters, gradients, optimizer state and activations per device. "
      "\"parameters\" says whether runs with the same --seed end with equal parameters.";
  return table;
}

LOCKSTEP_INLINE StudyTable missing_table(Study const& study) {
  StudyTable table{.title = "Runs without a result", .header = {"run", "reason"}};
  for (auto const& run : study.missing)
    table.rows.push_back({{run.name, (run.failed ? "failed: " : "") + run.reason}, StudyTable::Row::Kind::failed});
  return table;
}

LOCKSTEP_INLINE std::string study_csv(Study const& study) {
  std::string out =
      "dataset,program,parameters,batch,batch_of,precision,backend,parallel,engine,devices,threads,source,runs,"
      "failed_runs,warmup_epochs,baseline,epoch_seconds,epoch_seconds_std,samples_per_second,samples_per_second_std,"
      "training_seconds,training_seconds_std,speed_up,speed_up_std,efficiency,efficiency_std,metric,metric_value,"
      "metric_std,eval_loss,eval_loss_std,step_ms,data_wait_ms,compute_ms,communication_exposed_ms,optimizer_ms,"
      "other_ms,first_device_bytes,other_devices_bytes,dp_and_ddp_parameters,message\n";
  auto const number = [](double value) { return std::isfinite(value) ? detail::significant(value, 9) : std::string(); };
  for (auto const& group : study.groups) {
    auto const& run = group.any_run();
    for (auto const* const one : detail::rows_of(group)) {
      auto const& step = one->profile;
      auto const compute_ms = step.forward_ms + step.backward_ms + step.pass_ms;
      auto const sum_ms = step.data_wait_ms + compute_ms + step.communication_ms + step.optimizer_ms;
      auto const kind = detail::kind_of(*one);
      auto parameters = one->runs.empty() ? run.parameters : Index{0};
      for (auto const& each : one->runs) parameters = std::max(parameters, each.parameters);
      std::vector<std::string> cells{group.dataset,
                                     run.example,
                                     std::to_string(parameters),
                                     std::to_string(run.batch),
                                     run.batch_is_global ? "all devices" : "device",
                                     run.precision,
                                     run.backend,
                                     one->parallel,
                                     one->engine,
                                     std::to_string(one->devices),
                                     std::to_string(one->threads),
                                     kind == StudyTable::Row::Kind::predicted  ? "predicted"
                                     : kind == StudyTable::Row::Kind::measured ? "measured"
                                                                               : "failed",
                                     std::to_string(one->runs.size()),
                                     std::to_string(one->failed),
                                     std::to_string(one->runs.empty() ? 0 : one->runs[0].left_out_epochs),
                                     group.baseline_kind == BaselineKind::measured    ? "measured"
                                     : group.baseline_kind == BaselineKind::predicted ? "predicted"
                                                                                      : "none"};
      auto const add = [&](Statistic const& value) {
        cells.push_back(number(value.mean));
        cells.push_back(value.count > 1 ? number(value.deviation) : "");
      };
      for (auto const* const value :
           {&one->epoch_seconds, &one->samples_per_second, &one->training_seconds, &one->speed_up, &one->efficiency})
        add(*value);
      cells.push_back(group.metric);
      add(one->metric);
      add(one->loss);
      bool const has_step = one->has_speed();
      for (double const value : {step.step_ms(), step.data_wait_ms, compute_ms, step.communication_ms,
                                 step.optimizer_ms, std::max(0.0, step.step_ms() - sum_ms)})
        cells.push_back(has_step ? number(value) : "");
      cells.push_back(number(one->first_device_bytes));
      cells.push_back(number(one->other_devices_bytes));
      cells.push_back(one->parallel == "single" ? "n/a" : group.parameters_equal(one->devices));
      cells.push_back(one->message);
      bool first = true;
      for (auto const& cell : cells) {
        out += (first ? "" : ",") + detail::csv(cell);
        first = false;
      }
      out += "\n";
    }
  }
  return out;
}

LOCKSTEP_INLINE std::string study_latex(Study const& study) {
  bool one_metric = true, predicted = false, repeated = false, predicted_baseline = false;
  for (auto const& group : study.groups) {
    one_metric &= group.metric == study.groups[0].metric;
    predicted_baseline |= group.baseline_kind == BaselineKind::predicted;
    for (auto const* const one : detail::rows_of(group)) {
      predicted |= one->predicted;
      repeated |= one->samples_per_second.count > 1 || one->epoch_seconds.count > 1;
    }
  }
  auto const cell = [](Statistic const& value, int digits) {
    return value.is_known() ? "$" + detail::figure(value, digits, " \\pm ") + "$" : std::string("n/a");
  };
  auto header = study.groups.empty() ? std::string("accuracy") : study.groups[0].metric;
  if (!one_metric) header = "final metric";
  if (!header.empty() && header[0] >= 'a' && header[0] <= 'z') header[0] = static_cast<char>(header[0] - 'a' + 'A');
  std::string out =
      "% Written by scaling_report. The preamble needs \\usepackage{booktabs}.\n"
      "\\begin{table}[tbp]\n\\centering\\setlength{\\belowcaptionskip}{6pt}\n\\caption{Training speed on several "
      "devices.";
  if (repeated) out += " Values are means $\\pm$ standard deviations of repeated runs, or of the epochs of one run.";
  if (predicted) out += " Rows with $\\dagger$ are predicted, not measured.";
  if (predicted_baseline) out += " Without a run on one device, speed-up is relative to a prediction.";
  out +=
      "}\n\\label{tab:scaling}\n\\small\\setlength{\\tabcolsep}{4pt}\n\\begin{tabular}{lrrrrrr}\n\\toprule\n"
      "Policy & Devices & Epoch (s) & Samples/s & Speed-up & Eff. (\\%) & " +
      detail::latex(header) + " \\\\\n";
  for (auto const& group : study.groups) {
    auto const& run = group.any_run();
    out += "\\midrule\n\\multicolumn{7}{l}{\\textit{" + detail::latex(group.dataset) + "}, batch " +
           std::to_string(run.batch) + (run.batch_is_global ? " over all devices" : " per device") + "} \\\\\n";
    for (auto const* const one : detail::rows_of(group)) {
      out += detail::latex(one->parallel) + (one->predicted ? "$^\\dagger$" : "") + " & " +
             std::to_string(one->devices) + " & ";
      if (!one->has_speed()) {
        out += "\\multicolumn{5}{l}{failed} \\\\\n";
        continue;
      }
      out += cell(one->epoch_seconds, detail::digits_of(one->epoch_seconds.mean)) + " & " +
             cell(one->samples_per_second, detail::digits_of(one->samples_per_second.mean)) + " & " +
             cell(one->speed_up, 2) + " & " + cell(one->efficiency.times(100), 0) + " & " + cell(one->metric, 3) +
             (one_metric || !one->metric.is_known() ? "" : " (" + detail::latex(group.metric) + ")") + " \\\\\n";
    }
  }
  return out + "\\bottomrule\n\\end{tabular}\n\\end{table}\n";
}

}}}  // namespace lockstep::scaling
