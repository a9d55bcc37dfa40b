// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include <lockstep/core/philox.hpp>
#include <lockstep/data/sample_extent.hpp>
#include <lockstep/data/sample_key.hpp>

#include "clips.hpp"

namespace video_classification {

/// A random change of training clips.
enum class Change {
  flip,        ///< left and right, with probability 1/2
  brightness,  ///< up to a tenth of the range, brighter or darker
  shift,       ///< up to an eighth of the frames earlier or later; the outer frame is repeated
};

/// Changes clips by random numbers keyed on the seed, the epoch and the clip's position: equal for any number of
/// workers and ranks.
class Augment {
 public:
  Augment(std::vector<Change> const& changes, ClipSize const& size) : size_(size) {
    auto const has = [&](Change change) { return std::count(changes.begin(), changes.end(), change) > 0; };
    flip_ = has(Change::flip);
    brightness_ = has(Change::brightness);
    shift_ = has(Change::shift);
  }

  /// Returns the extent of a changed clip, which has the size of the clip.
  [[nodiscard]] static data::SampleExtent<Clip> extent(data::SampleExtent<Clip> const& clip) noexcept { return clip; }
  [[nodiscard]] Clip operator()(Clip clip, data::SampleKey const& key) const {
    auto const bits = key.random("video_classification.augment")(0);
    if (flip_ && bits[0] % 2 == 1)
      for (auto row = clip.pixels.begin(); row != clip.pixels.end(); row += size_.width)
        std::reverse(row, row + size_.width);
    if (brightness_) {
      auto const more = static_cast<int>(std::lround(51 * lockstep::uniform(bits[1]) - 25.5f));
      for (auto& pixel : clip.pixels) pixel = static_cast<std::uint8_t>(std::clamp(pixel + more, 0, 255));
    }
    auto const most = std::max<Index>(1, size_.frames / 8);
    if (shift_) shift(clip.pixels, static_cast<Index>(bits[2] % static_cast<std::uint32_t>(2 * most + 1)) - most);
    return clip;
  }

 private:
  /// Shifts frames to later times or, if negative, to earlier ones.
  void shift(std::vector<std::uint8_t>& pixels, Index later) const {
    auto const begin = pixels.begin(), end = pixels.end();
    auto const frame = size_.height * size_.width, moved = std::min(std::abs(later), size_.frames - 1) * frame;
    if (later > 0) {
      std::copy_backward(begin, end - moved, end);
      for (auto to = begin + frame; to < begin + moved; to += frame) std::copy(begin, begin + frame, to);
    } else if (later < 0) {
      std::copy(begin + moved, end, begin);
      for (auto to = end - moved; to < end - frame; to += frame) std::copy(end - frame, end, to);
    }
  }

  ClipSize size_;
  bool flip_, brightness_, shift_;
};

}  // namespace video_classification
