// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdio>
#include <string>

#include <doctest/doctest.h>

#include <lockstep/scaling/figure/bar_chart.hpp>
#include <lockstep/scaling/figure/detail/axis.hpp>

using namespace lockstep::scaling;

namespace {
std::string svg_of(BarChart const& chart) {
  Drawing drawing(600, 400, "");
  chart.draw(drawing, {0, 0, 600, 400});
  return drawing.svg();
}
bool contains(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }
/// Returns the height of the n-th polygon with a color, from 0; the legend has the first.
double height_of(std::string const& svg, std::string const& color, int n) {
  std::size_t at = 0;
  for (int i = 0; i <= n; ++i) at = svg.find("<polygon fill=\"" + color + "\" points=\"", at + 1);
  REQUIRE(at != std::string::npos);
  double x = 0, top = 0, bottom = 0;
  REQUIRE(std::sscanf(svg.c_str() + svg.find("points=\"", at) + 8, "%lf,%lf %lf,%lf %lf,%lf", &x, &top, &x, &x, &x,
                      &bottom) == 6);
  return bottom - top;
}
}  // namespace

TEST_CASE("bars are as high as their values, from zero on") {
  BarChart chart{.title = "title", .x_title = "x", .y_title = "y"};
  chart.categories = {"1", "2"};
  chart.series = {{"dp", "#010101", {{.value = 10}, {.value = 20, .spread = 2}}},
                  {"ddp", "#020202", {{}, {.value = 40, .predicted = true}}}};
  chart.lines = {{30, "75 %"}};
  auto const svg = svg_of(chart);
  CHECK(height_of(svg, "#010101", 2) == doctest::Approx(2 * height_of(svg, "#010101", 1)).epsilon(0.01));
  for (auto const* const text :
       {">title<", ">10.0<", ">20.0<", ">~40.0<", ">75 %<", ">dp<", ">ddp<", ">predicted, not measured<"})
    CHECK_MESSAGE(contains(svg, text), text);
  CHECK(contains(svg, "stroke=\"#020202\""));
}

TEST_CASE("stacked bars have the sum on top, and an empty chart has only its frame") {
  BarChart chart{.title = "t", .x_title = "x", .y_title = "y"};
  chart.layout = BarChart::Layout::stacked;
  chart.categories = {"a"};
  chart.series = {{"one", "#101010", {{.value = 30}}}, {"two", "#e0e0e0", {{.value = 70}}}};
  auto const svg = svg_of(chart);
  CHECK(contains(svg, ">100<"));
  CHECK(height_of(svg, "#e0e0e0", 1) == doctest::Approx(7.0 / 3 * height_of(svg, "#101010", 1)).epsilon(0.01));
  CHECK(contains(svg, "fill=\"#ffffff\" text-anchor=\"middle\">30.0<"));
  CHECK(contains(svg, "fill=\"#111111\" text-anchor=\"middle\">70.0<"));
  CHECK(contains(svg_of({.title = "none", .x_title = "", .y_title = ""}), ">none<"));
}

TEST_CASE("labels of bars keep clear of reference lines and of ideal values") {
  auto const y_of = [](std::string const& svg, std::string const& text) {
    auto const at = svg.find(">" + text + "</text>");
    REQUIRE(at != svg.npos);
    double x = 0, y = 0;
    REQUIRE(std::sscanf(svg.c_str() + svg.rfind("<text", at), "<text x=\"%lf\" y=\"%lf\"", &x, &y) == 2);
    return y;
  };
  // The baseline of a line's own label is as far below the line as that of a bar's label below the middle of its text.
  for (double value = 80; value <= 104; value += 0.5) {
    BarChart chart{.title = "t", .x_title = "x", .y_title = "y"};
    chart.categories = {"1"};
    chart.series = {{"dp", "#010101", {{.value = value}}}};
    chart.lines = {{100, "ideal"}};
    chart.unit = " %";
    auto svg = svg_of(chart);
    auto const label = detail::three_digits(value) + chart.unit;
    CHECK_MESSAGE(std::abs(y_of(svg, label) - y_of(svg, "ideal")) >= 7, value);
    chart.lines.clear();
    chart.series[0].bars[0].ideal = 100;
    svg = svg_of(chart);
    // As high as with the line, because the chart has an equal range.
    chart.lines = {{100, "other"}};
    CHECK(y_of(svg, label) == doctest::Approx(y_of(svg_of(chart), label)));
  }
}
