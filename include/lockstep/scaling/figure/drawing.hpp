// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

/// Position in pixels from the left upper corner of a drawing.
struct Point {
  double x = 0;  ///< grows to the right
  double y = 0;  ///< grows downwards
};

/// Rectangle in pixels.
struct Box {
  double x = 0;       ///< left edge
  double y = 0;       ///< upper edge
  double width = 0;   ///< extent to the right
  double height = 0;  ///< extent downwards

  [[nodiscard]] double right() const noexcept { return x + width; }    ///< right edge
  [[nodiscard]] double bottom() const noexcept { return y + height; }  ///< lower edge
};

/// Line of a shape.
struct Stroke {
  /// Pattern of the line.
  enum class Dash {
    solid,   ///< without gaps
    dashed,  ///< long parts
    dotted,  ///< short parts
  };

  std::string color = "#000000";  ///< "#rrggbb"
  double width = 1;               ///< in pixels; 0: no line
  Dash dash = Dash::solid;        ///< pattern
};

/// Font and position of a line of text. A text is vertically centered at its point.
struct TextStyle {
  /// Part of the text that is at its point.
  enum class Anchor {
    start,   ///< its beginning
    middle,  ///< its middle
    end,     ///< its end
  };
  /// Weight of the font.
  enum class Weight {
    normal,  ///< the font's own
    bold,    ///< thicker
  };
  /// Direction of the text.
  enum class Direction {
    across,  ///< from left to right
    up,      ///< from bottom to top
  };

  double size = 12;                         ///< height of the font in pixels
  Anchor anchor = Anchor::start;            ///< horizontal alignment
  std::string color = "#222222";            ///< "#rrggbb"
  Weight weight = Weight::normal;           ///< of the font
  Direction direction = Direction::across;  ///< of the text
};

/// Image of lines, polygons and text, in the order in which they are drawn. It is written as SVG without any other
/// program, or as commands of gnuplot, which makes a PNG of it. Both look equal.
class Drawing {
 public:
  /// @param title text for readers that cannot see the image
  Drawing(double width, double height, std::string title) : width_(width), height_(height), title_(std::move(title)) {}

  /// Draws a line through the points.
  void line(std::vector<Point> points, Stroke const& stroke);
  /// Draws a closed shape; an empty `fill` leaves it open.
  void polygon(std::vector<Point> points, std::string const& fill, Stroke const& stroke = {"", 0});
  /// Draws a rectangle.
  void rectangle(Box const& box, std::string const& fill, Stroke const& stroke = {"", 0});
  /// Draws a circle; the radius is in pixels.
  void circle(Point center, double radius, std::string const& fill, Stroke const& stroke = {"", 0});
  /// Draws a line of text.
  void text(Point at, std::string const& line, TextStyle const& style = {});

  /// Returns an upper estimate of a text's width in pixels.
  [[nodiscard]] static double text_width(std::string_view line, double size) noexcept;

  [[nodiscard]] double width() const noexcept { return width_; }              ///< in pixels
  [[nodiscard]] double height() const noexcept { return height_; }            ///< in pixels
  [[nodiscard]] std::string const& title() const noexcept { return title_; }  ///< for readers that cannot see the image

  /// Returns the image as one SVG element, which may be part of an HTML page.
  [[nodiscard]] std::string svg() const;
  /// Returns a gnuplot script that writes the image as PNG, with twice as many pixels in each direction.
  /// @param png path of the image
  [[nodiscard]] std::string gnuplot(std::string const& png) const;

 private:
  struct Shape {
    std::vector<Point> points;
    std::string fill;  // empty for a line
    Stroke stroke;
    std::string text = {};  // for one point
    TextStyle style = {};
  };

  double width_, height_;
  std::string title_;
  std::vector<Shape> shapes_;
};

}}}  // namespace lockstep::scaling

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/scaling/figure/drawing.ipp>
#endif
