// SPDX-License-Identifier: Apache-2.0
#include <clocale>
#include <cstdlib>
#include <string>

#include <doctest/doctest.h>

#include <lockstep/scaling/figure/detail/axis.hpp>
#include <lockstep/scaling/figure/drawing.hpp>

#include "temporary_folder.hpp"

using namespace lockstep::scaling;

namespace {
bool contains(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }
}  // namespace

TEST_CASE("shapes are written as SVG and as commands of gnuplot, with their text escaped") {
  Drawing drawing(200, 100, "a < b");
  drawing.rectangle({10, 20, 30, 40.04}, "#123456", {"#ffffff", 1});
  drawing.line({{0, 0}, {200, 100}}, {"#ff0000", 2, Stroke::Dash::dashed});
  drawing.text({50, 60}, "it's 5 % & more_x", {.size = 10, .anchor = TextStyle::Anchor::middle});
  drawing.text({5, 60}, "up", {.direction = TextStyle::Direction::up});
  auto const svg = drawing.svg();
  CHECK(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"200\" height=\"100\""));
  CHECK(contains(svg, "<title>a &lt; b</title>"));
  CHECK(contains(svg, "<polygon fill=\"#123456\" points=\"10,20 40,20 40,60 10,60\" stroke=\"#ffffff\""));
  CHECK(contains(svg,
                 "<polyline fill=\"none\" points=\"0,0 200,100\" stroke=\"#ff0000\" stroke-width=\"2\" "
                 "stroke-dasharray=\"6 4\"/>"));
  CHECK(contains(svg, "x=\"50\" y=\"63.5\" font-size=\"10\""));
  CHECK(contains(svg, " text-anchor=\"middle\">it's 5 % &amp; more_x</text>"));
  CHECK(contains(svg, " transform=\"rotate(-90 "));
  CHECK(svg.ends_with("</svg>\n"));

  auto const gnuplot = drawing.gnuplot("out/it's.png");
  CHECK(contains(gnuplot, "set terminal pngcairo size 400.00,200.00 "));
  CHECK(contains(gnuplot, "set output 'out/it''s.png'\n"));
  CHECK(contains(gnuplot, "set label 1 'it''s 5 % & more_x' at 50.00,60.00 center noenhanced"));
  CHECK(contains(gnuplot, "$s1 << END\n10.00 20.00\n40.00 20.00\n"));
  CHECK(contains(gnuplot, "$s2 with lines linecolor rgb '#ff0000' linewidth 4.00 dashtype (6,4)"));
}

TEST_CASE("the estimated width of a text counts characters, not bytes") {
  CHECK(Drawing::text_width("ab", 10) == doctest::Approx(12.6));
  CHECK(Drawing::text_width("äb", 10) == doctest::Approx(12.6));
  CHECK(Drawing::text_width("漢", 10) == doctest::Approx(10));
  CHECK(Drawing::text_width("\xff", 10) == doctest::Approx(6.3));
}

TEST_CASE("numbers have a point in a program whose locale has a comma") {
  lockstep_test::TemporaryFolder const folder;
  auto const command = "localedef -i de_DE -f UTF-8 " + (folder / "de_DE.UTF-8") + " >/dev/null 2>&1";
  ::setenv("LOCPATH", folder.path().c_str(), 1);
  bool const has_locale = std::system(command.c_str()) == 0 && std::setlocale(LC_ALL, "de_DE.UTF-8");
  ::unsetenv("LOCPATH");
  if (!has_locale) {
    MESSAGE("not tested: localedef cannot make the locale de_DE.UTF-8");
    return;
  }
  Drawing drawing(200, 100, "title");
  drawing.line({{1.5, 2.5}, {3, 4}}, {"#ff0000", 1.5});
  auto const svg = drawing.svg(), gnuplot = drawing.gnuplot("a.png");
  auto const label = detail::tick_label(1.5), of_bar = detail::three_digits(12345);
  std::setlocale(LC_ALL, "C");
  CHECK(contains(svg, "points=\"1.5,2.5 3,4\" stroke=\"#ff0000\" stroke-width=\"1.5\""));
  CHECK(contains(gnuplot, "$s1 << END\n1.50 2.50\n3.00 4.00\n"));
  CHECK(label == "1.5");
  CHECK(of_bar == "12.3k");
}
