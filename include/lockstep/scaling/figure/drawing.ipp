// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <utility>

#include <lockstep/core/utf8.hpp>
#include <lockstep/scaling/detail/escaped.hpp>
#include <lockstep/scaling/detail/rounded.hpp>
#include <lockstep/scaling/figure/drawing.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

LOCKSTEP_INLINE void Drawing::line(std::vector<Point> points, Stroke const& stroke) {
  shapes_.push_back({std::move(points), {}, stroke});
}

LOCKSTEP_INLINE void Drawing::polygon(std::vector<Point> points, std::string const& fill, Stroke const& stroke) {
  shapes_.push_back({std::move(points), fill, stroke});
}

LOCKSTEP_INLINE void Drawing::rectangle(Box const& box, std::string const& fill, Stroke const& stroke) {
  polygon({{box.x, box.y}, {box.right(), box.y}, {box.right(), box.bottom()}, {box.x, box.bottom()}}, fill, stroke);
}

LOCKSTEP_INLINE void Drawing::circle(Point center, double radius, std::string const& fill, Stroke const& stroke) {
  constexpr int corners = 16;
  std::vector<Point> points;
  for (int i = 0; i < corners; ++i) {
    auto const angle = 2 * 3.14159265358979 * i / corners;
    points.push_back({center.x + radius * std::cos(angle), center.y + radius * std::sin(angle)});
  }
  polygon(std::move(points), fill, stroke);
}

LOCKSTEP_INLINE void Drawing::text(Point at, std::string const& line, TextStyle const& style) {
  if (line.empty()) return;
  auto& shape = shapes_.emplace_back();
  shape.points = {at};
  shape.text = line;
  shape.style = style;
}

LOCKSTEP_INLINE double Drawing::text_width(std::string_view line, double size) noexcept {
  double ems = 0;
  while (!line.empty()) {
    auto const length = utf8_length(line);
    bool const narrow = line[0] == '.' || line[0] == ',' || line[0] == ' ' || line[0] == 'i' || line[0] == 'l';
    ems += length > 2 ? 1.0 : narrow ? 0.34 : 0.63;  // wide characters of Asia take a whole em
    line.remove_prefix(length == 0 ? 1 : length);
  }
  return ems * size;
}

LOCKSTEP_INLINE std::string Drawing::svg() const {
  auto const number = [](double value) {
    auto text = detail::rounded(value, 1);
    if (text.ends_with(".0")) text.resize(text.size() - 2);
    return text == "-0" ? std::string("0") : text;
  };
  auto const stroked = [&](Stroke const& stroke) {
    if (stroke.width <= 0) return std::string();
    std::string out = " stroke=\"" + stroke.color + "\" stroke-width=\"" + number(stroke.width) + "\"";
    if (stroke.dash == Stroke::Dash::dashed) out += " stroke-dasharray=\"6 4\"";
    if (stroke.dash == Stroke::Dash::dotted) out += " stroke-dasharray=\"2 3\"";
    return out;
  };
  auto const size = number(width_) + "\" height=\"" + number(height_);
  std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + size + "\" viewBox=\"0 0 " + number(width_) +
                    " " + number(height_) +
                    "\" font-family=\"'DejaVu Sans', Verdana, Arial, sans-serif\" role=\"img\">\n<title>" +
                    detail::html(title_) + "</title>\n<rect width=\"" + size + "\" fill=\"#ffffff\"/>\n";
  for (auto const& shape : shapes_) {
    if (!shape.text.empty()) {
      auto const at = shape.points[0];
      auto const& style = shape.style;
      bool const up = style.direction == TextStyle::Direction::up;
      // The baseline is a third of a letter below the middle.
      auto const base = 0.35 * style.size;
      auto const x = number(at.x + (up ? base : 0)), y = number(at.y + (up ? 0 : base));
      out +=
          "<text x=\"" + x + "\" y=\"" + y + "\" font-size=\"" + number(style.size) + "\" fill=\"" + style.color + "\"";
      if (style.anchor != TextStyle::Anchor::start)
        out += style.anchor == TextStyle::Anchor::end ? " text-anchor=\"end\"" : " text-anchor=\"middle\"";
      if (style.weight == TextStyle::Weight::bold) out += " font-weight=\"bold\"";
      if (up) out += " transform=\"rotate(-90 " + x + " " + y + ")\"";
      out += ">" + detail::html(shape.text) + "</text>\n";
      continue;
    }
    out += shape.fill.empty() ? "<polyline fill=\"none\" points=\"" : "<polygon fill=\"" + shape.fill + "\" points=\"";
    bool first = true;
    for (auto const& point : shape.points) {
      out += (first ? "" : " ") + number(point.x) + "," + number(point.y);
      first = false;
    }
    out += "\"" + stroked(shape.stroke) + "/>\n";
  }
  return out + "</svg>\n";
}

LOCKSTEP_INLINE std::string Drawing::gnuplot(std::string const& png) const {
  auto const quoted = [](std::string const& text) {
    std::string out = "'";
    for (char const c : text) {
      bool const control = static_cast<unsigned char>(c) < 0x20;
      out += c == '\'' ? std::string("''") : std::string(1, control ? ' ' : c);
    }
    return out + "'";
  };
  auto const number = [](double value) { return detail::rounded(value, 2); };
  std::string out = "set terminal pngcairo size " + number(2 * width_) + "," + number(2 * height_) +
                    " font 'DejaVu Sans,12' background '#ffffff'\nset encoding utf8\nset output " + quoted(png) +
                    "\nset lmargin at screen 0\nset rmargin at screen 1\nset bmargin at screen 0\n"
                    "set tmargin at screen 1\nunset border\nunset tics\nunset key\nset xrange [0:" +
                    number(width_) + "]\nset yrange [" + number(height_) + ":0]\n";
  constexpr double points = 2 * 0.75;  // of a font, for a pixel of this drawing
  std::string plots;
  int labels = 0, shapes = 0;
  for (auto const& shape : shapes_) {
    if (!shape.text.empty()) {
      auto const& style = shape.style;
      auto const at = shape.points[0];
      out += "set label " + std::to_string(++labels) + " " + quoted(shape.text) + " at " + number(at.x) + "," +
             number(at.y) +
             (style.anchor == TextStyle::Anchor::start ? " left"
              : style.anchor == TextStyle::Anchor::end ? " right"
                                                       : " center") +
             " noenhanced front textcolor rgb '" + style.color + "' font 'DejaVu Sans" +
             (style.weight == TextStyle::Weight::bold ? ":Bold" : "") + "," + number(points * style.size) + "'" +
             (style.direction == TextStyle::Direction::up ? " rotate by 90" : "") + "\n";
      continue;
    }
    auto const block = "$s" + std::to_string(++shapes);
    out += block + " << END\n";
    for (auto const& point : shape.points) out += number(point.x) + " " + number(point.y) + "\n";
    if (!shape.fill.empty()) out += number(shape.points[0].x) + " " + number(shape.points[0].y) + "\n";
    out += "END\n";
    auto const add = [&](std::string const& what) { plots += (plots.empty() ? "plot " : ", \\\n  ") + block + what; };
    if (!shape.fill.empty())
      add(" with filledcurves closed fillcolor rgb '" + shape.fill + "' fillstyle solid noborder");
    if (shape.stroke.width > 0)
      add(" with lines linecolor rgb '" + shape.stroke.color + "' linewidth " + number(2 * shape.stroke.width) +
          (shape.stroke.dash == Stroke::Dash::dashed   ? " dashtype (6,4)"
           : shape.stroke.dash == Stroke::Dash::dotted ? " dashtype (2,3)"
                                                       : ""));
  }
  return out + (plots.empty() ? "plot NaN" : plots) + "\nunset output\n";
}

}}}  // namespace lockstep::scaling
