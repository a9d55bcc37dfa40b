// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <lockstep/app/command.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/philox.hpp>
#include <lockstep/data/sample_key.hpp>

#include "clips.hpp"

namespace video_classification {

/// Random changes of training clips, drawn from the seed, the epoch and the clip's position in it: equal for any number
/// of workers and ranks.
struct Augment {
  bool flip = false;        ///< left and right, of every second clip
  bool brightness = false;  ///< up to a tenth of white more or less
  bool shift = false;       ///< up to an eighth of the frames earlier or later; the outer frame is repeated

  /// Adds --augment.
  void add_to(lockstep::app::Command& command) {
    command.add(
        "--augment",
        "Random changes of training clips: none, or several of flip (left and right), brightness and shift (in time), "
        "with commas between them (default none)",
        [this](std::string const& name, std::string const& text) { read(name, text); }, lockstep::app::Takes::list);
  }

  [[nodiscard]] Clip operator()(Clip clip, ClipSize const& size, data::SampleKey const& key) const {
    auto const bits = key.random("video_classification.augment")(0);
    auto const frame = size.height * size.width;
    if (flip && bits[0] % 2 == 1)
      for (auto row = clip.pixels.begin(); row != clip.pixels.end(); row += size.width)
        std::reverse(row, row + size.width);
    if (brightness) {
      auto const more = static_cast<int>(std::lround(51 * lockstep::uniform(bits[1]) - 25.5f));
      for (auto& pixel : clip.pixels) pixel = static_cast<std::uint8_t>(std::clamp(pixel + more, 0, 255));
    }
    auto const most = std::max<Index>(1, size.frames / 8);
    auto const later = shift ? static_cast<Index>(bits[2] % static_cast<std::uint32_t>(2 * most + 1)) - most : 0;
    auto const begin = clip.pixels.begin(), end = clip.pixels.end();
    auto const moved = std::min(std::abs(later), size.frames - 1) * frame;
    if (later > 0) {
      std::copy_backward(begin, end - moved, end);
      for (auto to = begin + frame; to < begin + moved; to += frame) std::copy(begin, begin + frame, to);
    } else if (later < 0) {
      std::copy(begin + moved, end, begin);
      for (auto to = end - moved; to < end - frame; to += frame) std::copy(end - frame, end, to);
    }
    return clip;
  }

 private:
  void read(std::string const& name, std::string_view text) {
    *this = {};
    for (std::size_t at = 0, end; at <= text.size(); at = end + 1) {
      end = std::min(text.find(',', at), text.size());
      auto const word = text.substr(at, end - at);
      if (word == "flip")
        flip = true;
      else if (word == "brightness")
        brightness = true;
      else if (word == "shift")
        shift = true;
      else if (word != "none" || text != "none")
        throw lockstep::ConfigError(name + " " + std::string(text) +
                                    ": must be none, or a list of flip, brightness and shift");
    }
  }
};

}  // namespace video_classification
