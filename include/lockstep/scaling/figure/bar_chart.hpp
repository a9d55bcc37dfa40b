// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <lockstep/scaling/figure/drawing.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

/// One bar of a chart.
struct Bar {
  double value = std::numeric_limits<double>::quiet_NaN();  ///< nan: no bar
  double spread = 0;                                        ///< half the length of the error bar; 0: none
  double ideal = std::numeric_limits<double>::quiet_NaN();  ///< value of a mark across the bar; nan: none
  bool predicted = false;                                   ///< outlined instead of filled
  std::string color = {};                                   ///< empty: that of the series
  std::vector<double> dots = {};                            ///< single measurements
};

/// Bars of one kind, one for each category.
struct BarSeries {
  std::string name;       ///< legend
  std::string color;      ///< as "#rrggbb"
  std::vector<Bar> bars;  ///< one for each category
};

/// Line across a chart.
struct ReferenceLine {
  double value = 0;  ///< on the y axis
  std::string name;  ///< label at its end
};

/// Chart of bars by category, next to each other or stacked, from zero on.
struct BarChart {
  /// Places of the bars of a category.
  enum class Layout {
    grouped,  ///< next to each other
    stacked,  ///< on top of each other
  };

  std::string title;                         ///< above the chart
  std::string x_title;                       ///< at the x axis
  std::string y_title;                       ///< at the y axis
  std::vector<std::string> categories = {};  ///< labels on the x axis
  std::vector<BarSeries> series = {};        ///< in the order of the legend
  Layout layout = Layout::grouped;           ///< of the bars of a category
  std::vector<ReferenceLine> lines = {};     ///< across all categories
  std::string dots = {};                     ///< legend of the bars' dots
  std::string ideal = {};                    ///< legend of the bars' ideal values
  std::string unit = {};                     ///< follows the values, as in " %"

  /// Draws the chart, with its titles, inside `panel`.
  void draw(Drawing& out, Box const& panel) const;

  /// Returns the width that a panel needs for all labels.
  [[nodiscard]] double wanted_width() const noexcept;

 private:
  [[nodiscard]] double highest() const noexcept;
  /// Parts of a group of bars: reference lines are drawn between them.
  enum class Pass { shapes, labels };
  void draw_group(Drawing& out, Box const& slot, std::size_t category, double highest, Pass pass) const;
  void draw_stack(Drawing& out, Box const& slot, std::size_t category, double highest) const;
};

}}}  // namespace lockstep::scaling

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/scaling/figure/bar_chart.ipp>
#endif
