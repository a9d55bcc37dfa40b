// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <lockstep/scaling/figure/detail/axis.hpp>
#include <lockstep/scaling/figure/line_chart.hpp>

using namespace lockstep::scaling;

TEST_CASE("axes have round ticks, or powers of two") {
  CHECK(detail::Axis{0, 100}.ticks(5) == std::vector<double>{0, 20, 40, 60, 80, 100});
  CHECK(detail::Axis{0.83, 0.92}.ticks(4).front() == doctest::Approx(0.85));
  CHECK(detail::Axis{1, 1024, true}.ticks(6) == std::vector<double>{1, 4, 16, 64, 256, 1024});
  CHECK(detail::Axis{1, 16, true}.place(4) == doctest::Approx(0.5));
  CHECK(detail::three_digits(0.4174) == "0.417");
  CHECK(detail::three_digits(99.96) == "100");
  CHECK(detail::three_digits(12345) == "12.3k");
  CHECK(detail::tick_label(0.1 + 0.2) == "0.3");
}

TEST_CASE("a line chart over devices draws lines and points at powers of two") {
  LineChart chart{
      .title = "t", .x_title = "devices", .y_title = "times", .series = {}, .values = LineChart::Values::logarithmic};
  chart.series = {{"ideal", "#0a0a0a", {{1, 1}, {2, 2}, {4, 4}}, LineSeries::Form::line, Stroke::Dash::dotted},
                  {"measured", "#0b0b0b", {{2, 1.8}}, LineSeries::Form::points}};
  Drawing drawing(600, 400, "");
  chart.draw(drawing, {0, 0, 600, 400});
  auto const svg = drawing.svg();
  for (auto const* const text : {">1</text>", ">2</text>", ">4</text>", ">ideal<", ">measured<"})
    CHECK_MESSAGE(svg.find(text) != svg.npos, text);
  CHECK(svg.find("stroke=\"#0a0a0a\" stroke-width=\"2\" stroke-dasharray=\"2 3\"") != svg.npos);
  CHECK(svg.find("fill=\"#0b0b0b\"") != svg.npos);
  LineChart{.title = "none", .x_title = "", .y_title = ""}.draw(drawing, {0, 0, 600, 400});
}

TEST_CASE("a value without bound has no ticks") {
  auto const infinite = std::numeric_limits<double>::infinity();
  CHECK(detail::Axis{1, infinite, true}.ticks(6).empty());
  CHECK(detail::Axis{0, infinite}.ticks(6).empty());
  LineChart chart{.title = "t", .x_title = "", .y_title = "", .values = LineChart::Values::logarithmic};
  chart.series = {{"measured", "#0b0b0b", {{1, 1}, {2, infinite}}}};
  Drawing drawing(600, 400, "");
  CHECK_NOTHROW(chart.draw(drawing, {0, 0, 600, 400}));
}
