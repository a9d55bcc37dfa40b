// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include <lockstep/scaling/figure/bar_chart.hpp>
#include <lockstep/scaling/figure/detail/axis.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

LOCKSTEP_INLINE double BarChart::highest() const noexcept {
  double most = 0;
  for (auto const& reference : lines) most = std::max(most, reference.value);
  for (std::size_t category = 0; category < categories.size(); ++category) {
    double sum = 0;
    for (auto const& one : series) {
      auto const& bar = one.bars[category];
      if (std::isnan(bar.value)) continue;
      sum += bar.value;
      most = std::max(most, bar.value + bar.spread);
      if (!std::isnan(bar.ideal)) most = std::max(most, bar.ideal);
      for (double const dot : bar.dots) most = std::max(most, dot);
    }
    if (layout == Layout::stacked) most = std::max(most, sum);
  }
  return most > 0 ? most : 1;
}

LOCKSTEP_INLINE double BarChart::wanted_width() const noexcept {
  double slot = 0;
  for (auto const& category : categories) slot = std::max(slot, Drawing::text_width(category, 11) + 10);
  auto const bars = layout == Layout::grouped ? static_cast<double>(series.size()) : 1.5;
  return 130 + std::max(slot, 44 * bars + 12) * static_cast<double>(categories.size());
}

LOCKSTEP_INLINE void BarChart::draw(Drawing& out, Box const& panel) const {
  using Mark = detail::LegendEntry::Mark;
  std::vector<detail::LegendEntry> legend;
  bool predicted = false;
  for (auto const& one : series) {
    legend.push_back({one.name, one.color, Mark::box});
    for (auto const& bar : one.bars) predicted |= bar.predicted && !std::isnan(bar.value);
  }
  if (predicted) legend.push_back({"predicted, not measured", "#555555", Mark::outline});
  if (!dots.empty()) legend.push_back({dots, "#555555", Mark::hollow_point});
  if (!ideal.empty()) legend.push_back({ideal, "#b3261e", Mark::line, Stroke::Dash::dashed});
  auto const top = 1.14 * highest();
  double margin = 10;
  for (auto const& reference : lines) margin = std::max(margin, 14 + Drawing::text_width(reference.name, 11));
  auto const area = detail::draw_frame(out, panel, title, x_title, y_title, {0, top, false}, legend, margin);
  auto const slot = area.width / static_cast<double>(std::max<std::size_t>(1, categories.size()));
  auto const place = [&](std::size_t i) {
    return Box{area.x + slot * static_cast<double>(i), area.y, slot, area.height};
  };
  for (std::size_t i = 0; i < categories.size(); ++i) {
    out.text({place(i).x + slot / 2, area.bottom() + 14}, categories[i],
             {.size = 11, .anchor = TextStyle::Anchor::middle});
    layout == Layout::grouped ? draw_group(out, place(i), i, top, Pass::shapes) : draw_stack(out, place(i), i, top);
  }
  for (auto const& reference : lines) {
    auto const y = area.bottom() - area.height * reference.value / top;
    out.line({{area.x, y}, {area.right(), y}}, {"#b3261e", 1.4, Stroke::Dash::dashed});
    out.text({area.right() + 6, y}, reference.name, {.size = 11, .color = "#8c1d18"});
  }
  for (std::size_t i = 0; i < categories.size() && layout == Layout::grouped; ++i)
    draw_group(out, place(i), i, top, Pass::labels);
}

LOCKSTEP_INLINE void BarChart::draw_group(Drawing& out, Box const& slot, std::size_t category, double top,
                                          Pass pass) const {
  bool const shapes = pass == Pass::shapes;
  double count = 0;
  for (auto const& one : series) count += std::isnan(one.bars[category].value) ? 0 : 1;
  auto const pitch = std::min(64.0, 0.86 * slot.width / std::max(1.0, static_cast<double>(series.size())));
  double x = slot.x + slot.width / 2 - pitch * count / 2;
  auto const height = [&](double value) { return slot.bottom() - slot.height * std::max(0.0, value) / top; };
  for (auto const& one : series) {
    auto const& bar = one.bars[category];
    if (std::isnan(bar.value)) continue;
    auto const color = bar.color.empty() ? one.color : bar.color;
    Box const box{x + 0.06 * pitch, height(bar.value), 0.88 * pitch, slot.bottom() - height(bar.value)};
    if (shapes && bar.predicted)
      out.rectangle(box, "#ffffff", {color, 1.6, Stroke::Dash::dotted});
    else if (shapes)
      out.rectangle(box, color);
    auto const middle = x + pitch / 2;
    double label = box.y;
    if (shapes && !std::isnan(bar.ideal)) {
      auto const y = height(bar.ideal);
      out.line({{x, y}, {x + pitch, y}}, {"#b3261e", 1.6, Stroke::Dash::dashed});
    }
    for (std::size_t i = 0; i < bar.dots.size(); ++i) {
      auto const part = (static_cast<double>(i) + 0.5) / static_cast<double>(bar.dots.size()) - 0.5;
      if (shapes) out.circle({middle + 0.6 * pitch * part, height(bar.dots[i])}, 2.5, "#ffffff", {"#333333", 1});
      label = std::min(label, height(bar.dots[i]) - 2);
    }
    if (bar.spread > 0) {
      if (shapes) detail::draw_spread(out, middle, height(bar.value + bar.spread), height(bar.value - bar.spread));
      label = std::min(label, height(bar.value + bar.spread));
    }
    auto const text = (bar.predicted ? "~" : "") + detail::three_digits(bar.value) + unit;
    bool const fits = Drawing::text_width(text, 10.5) <= pitch + 2;
    auto const length = Drawing::text_width(text, fits ? 10.5 : 10);
    if (shapes) {
      x += pitch;
      continue;
    }
    auto const extent = fits ? 15 : length + 5;
    auto const avoid = [&](double y) {  // a line through the label
      if (y <= label && y >= label - extent - 2) label = y;
    };
    auto marks = lines;
    if (!std::isnan(bar.ideal)) marks.push_back({bar.ideal, {}});
    std::sort(marks.begin(), marks.end(), [](auto const& a, auto const& b) { return a.value < b.value; });
    for (auto const& mark : marks) avoid(height(mark.value));
    if (fits) {
      out.rectangle({middle - length / 2, label - 15, length, 12}, "#ffffff");  // hides the grid behind the text
      out.text({middle, label - 9}, text, {.size = 10.5, .anchor = TextStyle::Anchor::middle});
    } else {
      out.rectangle({middle - 6, label - 5 - length, 12, length}, "#ffffff");
      out.text({middle, label - 5}, text, {.size = 10, .direction = TextStyle::Direction::up});
    }
    x += pitch;
  }
}

LOCKSTEP_INLINE void BarChart::draw_stack(Drawing& out, Box const& slot, std::size_t category, double top) const {
  auto const width = std::min(90.0, 0.66 * slot.width);
  auto const x = slot.x + (slot.width - width) / 2;
  double sum = 0;
  for (auto const& one : series) {
    auto const& bar = one.bars[category];
    if (std::isnan(bar.value) || bar.value <= 0) continue;
    auto const height = slot.height * bar.value / top;
    Box const box{x, slot.bottom() - slot.height * (sum + bar.value) / top, width, height};
    auto const color = bar.color.empty() ? one.color : bar.color;
    out.rectangle(box, color, {"#ffffff", height > 3 ? 1.0 : 0.0});
    auto const text = detail::three_digits(bar.value);
    if (height >= 14 && Drawing::text_width(text, 10.5) < width) {
      auto const channel = [&](std::size_t at) { return std::stoi(color.substr(at, 2), nullptr, 16); };
      bool const dark = 299 * channel(1) + 587 * channel(3) + 114 * channel(5) < 128000;
      out.text({x + width / 2, box.y + height / 2}, text,
               {.size = 10.5, .anchor = TextStyle::Anchor::middle, .color = dark ? "#ffffff" : "#111111"});
    }
    sum += bar.value;
  }
  if (sum > 0)
    out.text({x + width / 2, slot.bottom() - slot.height * sum / top - 9}, detail::three_digits(sum) + unit,
             {.size = 10.5, .anchor = TextStyle::Anchor::middle, .weight = TextStyle::Weight::bold});
}

}}}  // namespace lockstep::scaling
