// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include <lockstep/scaling/figure/drawing.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

/// Point of a line chart, with half the length of its error bar.
struct LinePoint {
  double x = 0, y = 0, spread = 0;
};

/// Points that belong together.
struct LineSeries {
  enum class Form {
    line,           ///< a line without markers
    points,         ///< markers
    hollow_points,  ///< markers of predicted values
    both,           ///< markers on a line
  };

  std::string name, color;
  std::vector<LinePoint> points;
  Form form = Form::both;
  Stroke::Dash dash = Stroke::Dash::solid;
};

/// Chart of lines and points over numbers of devices, on a logarithmic axis.
struct LineChart {
  enum class Values {
    linear,       ///< a range around the values
    logarithmic,  ///< powers of two
  };

  std::string title, x_title, y_title;
  std::vector<LineSeries> series = {};
  Values values = Values::linear;

  /// Draws the chart, with its titles, inside `panel`.
  void draw(Drawing& out, Box const& panel) const;
};

}}}  // namespace lockstep::scaling

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/scaling/figure/line_chart.ipp>
#endif
