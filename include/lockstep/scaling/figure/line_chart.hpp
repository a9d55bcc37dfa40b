// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include <lockstep/scaling/figure/drawing.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

/// Point of a line chart.
struct LinePoint {
  double x = 0;       ///< number of devices
  double y = 0;       ///< value
  double spread = 0;  ///< half the length of the error bar; 0: none
};

/// Points that belong together.
struct LineSeries {
  /// How the points are drawn.
  enum class Form {
    line,           ///< a line without markers
    points,         ///< markers
    hollow_points,  ///< markers of predicted values
    both,           ///< markers on a line
  };

  std::string name;                         ///< legend
  std::string color;                        ///< as "#rrggbb"
  std::vector<LinePoint> points;            ///< by ascending x
  Form form = Form::both;                   ///< of the points
  Stroke::Dash dash = Stroke::Dash::solid;  ///< of the line
};

/// Chart of lines and points over numbers of devices, on a logarithmic axis.
struct LineChart {
  /// Scale of the y axis.
  enum class Values {
    linear,       ///< a range around the values
    logarithmic,  ///< powers of two
  };

  std::string title;                    ///< above the chart
  std::string x_title;                  ///< at the x axis
  std::string y_title;                  ///< at the y axis
  std::vector<LineSeries> series = {};  ///< in the order of the legend
  Values values = Values::linear;       ///< scale of the y axis

  /// Draws the chart, with its titles, inside `panel`.
  void draw(Drawing& out, Box const& panel) const;
};

}}}  // namespace lockstep::scaling

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/scaling/figure/line_chart.ipp>
#endif
