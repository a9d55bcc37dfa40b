// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/scaling/figure/detail/axis.hpp>
#include <lockstep/scaling/figure/line_chart.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

LOCKSTEP_INLINE void LineChart::draw(Drawing& out, Box const& panel) const {
  using Mark = detail::LegendEntry::Mark;
  using Form = LineSeries::Form;
  std::vector<detail::LegendEntry> legend;
  std::vector<double> at;
  double low = 1e300, high = -1e300;
  for (auto const& one : series) {
    auto const mark = one.form == Form::points          ? Mark::point
                      : one.form == Form::hollow_points ? Mark::hollow_point
                                                        : Mark::line;
    if (!one.points.empty()) legend.push_back({one.name, one.color, mark, one.dash});
    for (auto const& point : one.points) {
      low = std::min(low, point.y - point.spread);
      high = std::max(high, point.y + point.spread);
      at.push_back(point.x);
    }
  }
  if (at.empty()) {
    low = 0;
    high = 1;
    at = {1};
  }
  detail::Axis y{low, high, values == Values::logarithmic};
  if (y.logarithmic) {
    y.low = std::exp2(std::floor(std::log2(std::max(low, 1e-9)) + 1e-9));
    y.high = std::exp2(std::ceil(std::log2(std::max(high, 2 * y.low)) - 1e-9));
  } else {
    auto const margin = std::max(0.15 * (high - low), 0.01 * std::max(std::abs(high), 1e-9));
    y.low = low - margin;
    y.high = high + margin;
  }
  std::sort(at.begin(), at.end());
  at.erase(std::unique(at.begin(), at.end()), at.end());
  detail::Axis const x{at.front() / 1.25, at.back() * 1.25, true};
  auto const area = detail::draw_frame(out, panel, title, x_title, y_title, y, legend, 16);
  auto const place = [&](double of, double value) {
    return Point{area.x + area.width * x.place(of), area.bottom() - area.height * y.place(value)};
  };
  double last = -1e9;  // right end of the last label
  for (double const tick : at) {
    auto const center = place(tick, y.low).x, half = Drawing::text_width(detail::tick_label(tick), 11) / 2;
    out.line({{center, area.bottom()}, {center, area.bottom() + 4}}, {"#444444", 1});
    if (center - half < last + 6) continue;
    out.text({center, area.bottom() + 14}, detail::tick_label(tick), {.size = 11, .anchor = TextStyle::Anchor::middle});
    last = center + half;
  }
  // Points of several series at one number of devices are next to each other.
  auto const is_marked = [](LineSeries const& one) { return one.form != Form::line; };
  auto const aside = [&](std::size_t which, double devices) {
    constexpr double pixels = 10;
    double before = 0, all = 0;
    for (std::size_t i = 0; i < series.size(); ++i)
      for (auto const& point : series[i].points) {
        if (!is_marked(series[i]) || point.x != devices) continue;
        all += 1;
        before += i < which ? 1 : 0;
      }
    return pixels * (before - (all - 1) / 2);
  };
  for (std::size_t which = 0; which < series.size(); ++which) {
    auto const& one = series[which];
    bool const has_points = is_marked(one);
    std::vector<Point> line;
    for (auto const& point : one.points) {
      auto const here = place(point.x, point.y);
      line.push_back({here.x + (has_points ? aside(which, point.x) : 0), here.y});
    }
    if (line.size() > 1 && (one.form == Form::line || one.form == Form::both)) out.line(line, {one.color, 2, one.dash});
    if (!has_points) continue;
    for (std::size_t i = 0; i < line.size(); ++i) {
      auto const& point = one.points[i];
      if (point.spread > 0)
        detail::draw_spread(out, line[i].x, place(point.x, point.y + point.spread).y,
                            place(point.x, point.y - point.spread).y);
      detail::draw_marker(out, line[i], one.color, one.form == Form::hollow_points ? Mark::hollow_point : Mark::point);
    }
  }
}

}}}  // namespace lockstep::scaling
