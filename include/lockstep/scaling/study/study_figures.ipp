// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <utility>

#include <lockstep/scaling/figure/bar_chart.hpp>
#include <lockstep/scaling/figure/line_chart.hpp>
#include <lockstep/scaling/study/study_figures.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

namespace detail {

/// Colors with different lightness, so that they differ in grey.
[[nodiscard]] inline std::string color_of(std::string const& parallel) {
  return parallel == "single" ? "#76808c" : parallel == "dp" ? "#f0b429" : "#12467f";
}

class GroupFigures {
 public:
  explicit GroupFigures(StudyGroup const& group) : group_(group) {
    std::set<Index> counts;
    for (auto const& one : group.configurations)
      if (one.has_speed()) counts.insert(one.devices);
    devices_.assign(counts.begin(), counts.end());
  }

  [[nodiscard]] std::vector<StudyFigure> all() {
    if (devices_.empty()) return {};
    epoch_time();
    speed_up_and_efficiency();
    throughput();
    quality();
    phases();
    memory();
    prediction();
    return std::move(out_);
  }

 private:
  using Make = std::function<Bar(Configuration const&)>;
  static constexpr double height = 400;

  [[nodiscard]] std::string title(std::string const& what) const { return what + ": " + group_.title; }

  void add(std::string const& name, std::string const& caption, Drawing drawing) {
    out_.push_back({group_.slug + "_" + name, caption, std::move(drawing)});
  }

  /// Returns a chart with a category per number of devices and a series per policy.
  [[nodiscard]] BarChart by_devices(std::string const& what, std::string const& unit, Make const& make) const {
    BarChart chart{.title = title(what), .x_title = "devices", .y_title = unit};
    for (auto const n : devices_) chart.categories.push_back(std::to_string(n));
    for (auto const* const parallel : {"single", "dp", "ddp"}) {
      BarSeries series{parallel, color_of(parallel), {}};
      bool any = false;
      for (auto const n : devices_) {
        auto const* const one = group_.find(parallel, n);
        series.bars.push_back(one && one->has_speed() && !one->predicted ? make(*one) : Bar{});
        any |= !std::isnan(series.bars.back().value);
      }
      if (any) chart.series.push_back(std::move(series));
    }
    return chart;
  }

  void add_chart(std::string const& name, std::string const& caption, BarChart const& chart) {
    auto const width = std::max(560.0, chart.wanted_width());
    Drawing drawing(width, height, chart.title);
    chart.draw(drawing, {8, 8, width - 16, height - 16});
    add(name, caption, std::move(drawing));
  }

  void epoch_time() {
    bool spread = false;
    auto chart = by_devices("Time of an epoch", "seconds", [&](Configuration const& one) {
      Bar bar{.value = one.epoch_seconds.mean, .spread = one.epoch_seconds.deviation};
      for (auto const& run : one.runs)
        bar.dots.insert(bar.dots.end(), run.epoch_seconds.begin(), run.epoch_seconds.end());
      if (bar.dots.size() > 12) bar.dots.clear();
      spread |= !bar.dots.empty();
      return bar;
    });
    if (spread) chart.dots = "one epoch";
    if (!chart.series.empty())
      add_chart("epoch_time_detailed", "Mean seconds of an epoch, with the standard deviation.", chart);
  }

  void speed_up_and_efficiency() {
    if (!group_.baseline.has_speed()) return;
    auto const threads = static_cast<double>(group_.baseline.profile.processors());
    auto speed_up = by_devices("Speed-up", "times the samples/s of one device", [&](Configuration const& one) {
      return Bar{.value = one.speed_up.mean,
                 .spread = one.speed_up.deviation,
                 .ideal = static_cast<double>(one.profile.processors()) / threads};
    });
    speed_up.ideal = "ideal";
    auto efficiency = by_devices("Efficiency", "% of ideal", [](Configuration const& one) {
      return Bar{.value = 100 * one.efficiency.mean, .spread = 100 * one.efficiency.deviation};
    });
    efficiency.lines = {{100, "ideal"}, {75, "75 %"}};
    auto const width = std::max(460.0, speed_up.wanted_width());
    Drawing drawing(2 * width, height, title("Speed-up and efficiency"));
    speed_up.draw(drawing, {8, 8, width - 16, height - 16});
    efficiency.draw(drawing, {width + 8, 8, width - 16, height - 16});
    add("speedup_efficiency",
        group_.baseline_kind == BaselineKind::predicted
            ? "Speed-up and efficiency over one device, whose speed is predicted."
            : "Speed-up and efficiency over one device.",
        std::move(drawing));
  }

  void throughput() {
    auto const alone = group_.baseline.samples_per_second.mean;
    auto const threads = static_cast<double>(std::max<Index>(1, group_.baseline.profile.processors()));
    auto chart = by_devices("Throughput", "samples/s", [&](Configuration const& one) {
      Bar bar{.value = one.samples_per_second.mean, .spread = one.samples_per_second.deviation};
      if (group_.baseline.has_speed()) bar.ideal = alone * static_cast<double>(one.profile.processors()) / threads;
      return bar;
    });
    if (group_.baseline.has_speed()) chart.ideal = "ideal";
    add_chart("throughput", "Samples per second over all devices.", chart);
  }

  void quality() {
    LineChart chart{.title = title("Final " + group_.metric), .x_title = "devices", .y_title = group_.metric};
    for (auto const* const parallel : {"single", "dp", "ddp"}) {
      LineSeries series{parallel, color_of(parallel), {}, LineSeries::Form::both};
      for (auto const n : devices_) {
        auto const* const one = group_.find(parallel, n);
        if (one && one->metric.is_known())
          series.points.push_back({static_cast<double>(n), one->metric.mean, one->metric.deviation});
      }
      if (series.points.size() < 2) series.form = LineSeries::Form::points;
      if (!series.points.empty()) chart.series.push_back(std::move(series));
    }
    if (chart.series.empty()) return;
    constexpr double width = 560;
    Drawing drawing(width, height, chart.title);
    chart.draw(drawing, {8, 8, width - 16, height - 16});
    add("accuracy",
        "The last evaluation's " + group_.metric +
            ", with the standard deviation over repeats. "
            "The axis does not begin at zero.",
        std::move(drawing));
  }

  void phases() {
    BarChart chart{.title = title("Phases of a step"), .x_title = "configuration", .y_title = "ms per step"};
    chart.layout = BarChart::Layout::stacked;
    BarSeries data{"waiting for data", "#f9ebbb", {}}, compute{"compute", "#0d2f57", {}},
        exposed{"exposed communication", "#dd7a3b", {}}, optimizer{"optimizer", "#8fc1e3", {}},
        other{"other", "#646464", {}};
    for (auto const& one : group_.configurations) {
      if (!one.has_speed()) continue;
      auto const& step = one.profile;
      auto const compute_ms = step.forward_ms + step.backward_ms + step.pass_ms;
      auto const known = step.data_wait_ms + compute_ms + step.communication_ms + step.optimizer_ms;
      chart.categories.push_back(one.label());
      data.bars.push_back({.value = step.data_wait_ms});
      compute.bars.push_back({.value = compute_ms});
      exposed.bars.push_back({.value = step.communication_ms});
      optimizer.bars.push_back({.value = step.optimizer_ms});
      other.bars.push_back({.value = std::max(0.0, step.step_ms() - known)});
    }
    chart.series = {std::move(compute), std::move(exposed), std::move(optimizer), std::move(data), std::move(other)};
    add_chart("phases", "Mean milliseconds of a step of rank 0 by phase.", chart);
  }

  void memory() {
    BarChart chart{.title = title("Peak memory of a device"), .x_title = "configuration", .y_title = "MB"};
    BarSeries first{"first device", "#12467f", {}}, others{"other devices, the largest", "#a9c6e0", {}};
    BarSeries gathers{"first device of dp: sums and updates for all", "#d9722e", {}};
    bool any = false, dp = false;
    for (auto const& one : group_.configurations) {
      if (!one.has_speed() || std::isnan(one.first_device_bytes)) continue;
      any = true;
      bool const is_dp = one.parallel == "dp";
      dp |= is_dp;
      chart.categories.push_back(one.label());
      first.bars.push_back(is_dp ? Bar{} : Bar{.value = one.first_device_bytes / 1e6});
      gathers.bars.push_back(is_dp ? Bar{.value = one.first_device_bytes / 1e6} : Bar{});
      others.bars.push_back({.value = one.other_devices_bytes / 1e6});
    }
    if (!any) return;
    chart.series.push_back(std::move(first));
    if (dp) chart.series.push_back(std::move(gathers));
    chart.series.push_back(std::move(others));
    add_chart("memory", "Peak memory of parameters, gradients, optimizer state and activations per device.", chart);
  }

  void prediction() {
    if (group_.curve.size() < 2) return;
    auto const alone = group_.baseline.samples_per_second.mean;
    if (!(alone > 0)) return;
    LineChart chart{.title = title("Predicted speed-up of ddp"),
                    .x_title = "devices",
                    .y_title = "times the samples/s of one device",
                    .series = {},
                    .values = LineChart::Values::logarithmic};
    LineSeries ideal{"ideal", "#8a8a8a", {}, LineSeries::Form::line, Stroke::Dash::dotted};
    LineSeries curve{"predicted, not measured", "#b3261e", {}, LineSeries::Form::line, Stroke::Dash::dashed};
    for (auto const& size : group_.curve) {
      auto const n = static_cast<double>(size.ranks);
      ideal.points.push_back({n, n});
      if (size.samples_per_second > 0) curve.points.push_back({n, size.samples_per_second / alone});
    }
    chart.series = {std::move(ideal), std::move(curve)};
    for (auto const* const parallel : {"dp", "ddp"}) {
      LineSeries measured{std::string(parallel) + ", measured", color_of(parallel), {}, LineSeries::Form::points};
      for (auto const& one : group_.configurations)
        if (one.parallel == parallel && one.speed_up.is_known())
          measured.points.push_back({static_cast<double>(one.devices), one.speed_up.mean, one.speed_up.deviation});
      if (!measured.points.empty()) chart.series.push_back(std::move(measured));
    }
    if (group_.baseline_kind == BaselineKind::measured)
      chart.series.push_back({"single, measured", color_of("single"), {{1, 1}}, LineSeries::Form::points});
    constexpr double width = 700;
    Drawing drawing(width, height + 40, chart.title);
    chart.draw(drawing, {8, 8, width - 16, height + 24});
    add("prediction",
        "Measured points, and the speed-up predicted for devices with processors of their own on a network.",
        std::move(drawing));
  }

  StudyGroup const& group_;
  std::vector<Index> devices_;
  std::vector<StudyFigure> out_;
};

}  // namespace detail

LOCKSTEP_INLINE std::vector<StudyFigure> study_figures(StudyGroup const& group) {
  return detail::GroupFigures(group).all();
}

}}}  // namespace lockstep::scaling
