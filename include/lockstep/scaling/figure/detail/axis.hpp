// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include <lockstep/scaling/figure/drawing.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling::detail {

/// Scale of one axis: values from `low` to `high`.
struct Axis {
  double low = 0, high = 1;
  bool logarithmic = false;

  /// Returns the place of a value, from 0 to 1.
  [[nodiscard]] double place(double value) const noexcept;
  /// Returns about `count` values to label: round numbers, or powers of two. Returns none for an axis without end.
  [[nodiscard]] std::vector<double> ticks(int count) const;
};

/// Returns a number with as few decimals as ticks of an axis need.
[[nodiscard]] std::string tick_label(double value);

/// Returns a number with three significant digits.
[[nodiscard]] std::string three_digits(double value);

/// Entry of a legend.
struct LegendEntry {
  enum class Mark { box, outline, line, point, hollow_point };

  std::string name;
  std::string color;
  Mark mark = Mark::box;
  Stroke::Dash dash = Stroke::Dash::solid;
};

/// Draws entries in rows from the left upper corner of `box`.   @returns the height
double draw_legend(Drawing& out, Box const& box, std::vector<LegendEntry> const& entries);

/// Draws titles, the vertical axis with its grid, and the frame's base line.
/// @param box panel with all titles   @returns the area of the values
Box draw_frame(Drawing& out, Box const& box, std::string const& title, std::string const& x_title,
               std::string const& y_title, Axis const& y, std::vector<LegendEntry> const& legend, double right_margin);

/// Draws a marker of the measured or predicted kind.
void draw_marker(Drawing& out, Point at, std::string const& color, LegendEntry::Mark mark);

/// Draws a vertical bar of the spread around `at`.
void draw_spread(Drawing& out, double x, double top, double bottom);

}}}  // namespace lockstep::scaling::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/scaling/figure/detail/axis.ipp>
#endif
