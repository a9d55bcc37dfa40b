// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/scaling/detail/rounded.hpp>
#include <lockstep/scaling/figure/detail/axis.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling::detail {

LOCKSTEP_INLINE double Axis::place(double value) const noexcept {
  auto const part = logarithmic ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
  return std::clamp(part, 0.0, 1.0);
}

LOCKSTEP_INLINE std::vector<double> Axis::ticks(int count) const {
  std::vector<double> out;
  if (!std::isfinite(low) || !std::isfinite(high)) return out;  // steps would have no end
  if (logarithmic) {
    auto const first = std::ceil(std::log2(low) - 1e-9), last = std::floor(std::log2(high) + 1e-9);
    auto const step = std::max(1.0, std::ceil((last - first) / count));
    for (auto power = first; power <= last; power += step) out.push_back(std::exp2(power));
    return out;
  }
  auto const rough = (high - low) / count, scale = std::pow(10, std::floor(std::log10(rough)));
  auto const digit = rough / scale, step = (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10) * scale;
  for (auto i = std::ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; ++i) out.push_back(i * step);
  return out;
}

LOCKSTEP_INLINE std::string tick_label(double value) {
  auto const size = std::abs(value);
  if (size >= 1e6) return significant(value / 1e6, 4) + "M";
  if (size >= 1e4) return significant(value / 1e3, 4) + "k";
  return significant(size < 1e-12 ? 0.0 : value, 5);
}

LOCKSTEP_INLINE std::string three_digits(double value) {
  auto const size = std::abs(value);
  if (size >= 9999.5)
    return tick_label(std::stod(rounded(value / std::pow(10, std::floor(std::log10(size)) - 2), 0)) *
                      std::pow(10, std::floor(std::log10(size)) - 2));
  return rounded(value, size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 || size == 0 ? 2 : 3);
}

LOCKSTEP_INLINE void draw_marker(Drawing& out, Point at, std::string const& color, LegendEntry::Mark mark) {
  bool const hollow = mark == LegendEntry::Mark::hollow_point;
  out.circle(at, hollow ? 4.5 : 5, hollow ? "#ffffff" : color, {hollow ? color : "#ffffff", hollow ? 1.8 : 1});
}

LOCKSTEP_INLINE void draw_spread(Drawing& out, double x, double top, double bottom) {
  for (Stroke const& stroke : {Stroke{"#ffffff", 3}, Stroke{"#000000", 1.2}}) {  // visible on dark bars, too
    out.line({{x, top}, {x, bottom}}, stroke);
    out.line({{x - 3, top}, {x + 3, top}}, stroke);
    out.line({{x - 3, bottom}, {x + 3, bottom}}, stroke);
  }
}

LOCKSTEP_INLINE double draw_legend(Drawing& out, Box const& box, std::vector<LegendEntry> const& entries) {
  constexpr double row = 17, size = 11, mark = 22;
  double x = box.x, y = box.y + row / 2;
  for (auto const& entry : entries) {
    auto const width = mark + 6 + Drawing::text_width(entry.name, size) + 14;
    if (x > box.x && x + width > box.right()) {
      x = box.x;
      y += row;
    }
    switch (entry.mark) {
      case LegendEntry::Mark::box:
        out.rectangle({x + 4, y - 5, 14, 10}, entry.color);
        break;
      case LegendEntry::Mark::outline:
        out.rectangle({x + 4, y - 5, 14, 10}, "#ffffff", {entry.color, 1.4, Stroke::Dash::dotted});
        break;
      case LegendEntry::Mark::line:
        out.line({{x, y}, {x + mark, y}}, {entry.color, 1.8, entry.dash});
        break;
      case LegendEntry::Mark::point:
      case LegendEntry::Mark::hollow_point:
        draw_marker(out, {x + mark / 2, y}, entry.color, entry.mark);
        break;
    }
    out.text({x + mark + 6, y}, entry.name, {.size = size});
    x += width;
  }
  return entries.empty() ? 0 : y + row / 2 - box.y;
}

LOCKSTEP_INLINE Box draw_frame(Drawing& out, Box const& box, std::string const& title, std::string const& x_title,
                               std::string const& y_title, Axis const& y, std::vector<LegendEntry> const& legend,
                               double right_margin) {
  out.text({box.x + 4, box.y + 14}, title, {.size = 14, .weight = TextStyle::Weight::bold});
  auto const top = box.y + 32 + draw_legend(out, {box.x + 4, box.y + 28, box.width - 8, 0}, legend) + 10;
  auto const ticks = y.ticks(6);
  double widest = 0;
  for (double const tick : ticks) widest = std::max(widest, Drawing::text_width(tick_label(tick), 11));
  auto const left = box.x + 30 + widest;
  Box const area{left, top, box.right() - right_margin - left, box.bottom() - 46 - top};
  for (double const tick : ticks) {
    auto const at = area.bottom() - area.height * y.place(tick);
    out.line({{area.x, at}, {area.right(), at}}, {"#dddddd", 1});
    out.text({area.x - 6, at}, tick_label(tick), {.size = 11, .anchor = TextStyle::Anchor::end});
  }
  out.line({{area.x, area.bottom()}, {area.right(), area.bottom()}}, {"#444444", 1});
  out.text({box.x + 12, area.y + area.height / 2}, y_title,
           {.size = 12, .anchor = TextStyle::Anchor::middle, .direction = TextStyle::Direction::up});
  out.text({area.x + area.width / 2, box.bottom() - 10}, x_title, {.size = 12, .anchor = TextStyle::Anchor::middle});
  return area;
}

}}}  // namespace lockstep::scaling::detail
