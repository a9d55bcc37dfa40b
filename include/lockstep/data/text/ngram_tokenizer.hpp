// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string_view>

#include <lockstep/core/version.hpp>

namespace lockstep::inline LOCKSTEP_ABI::data {

/// All overlapping runs of `width` bytes, from each `stride`-th byte on; width 1 gives the bytes. What is shorter than
/// `width` is one token. Suits source code, where spelling says more than words.
struct NgramTokenizer {
  std::size_t width = 3;
  std::size_t stride = 1;

  /// Calls `each(token)` for every token in order.
  /// @pre width and stride are at least 1
  template <class Each>
  void operator()(std::string_view text, Each&& each) const {
    if (text.empty()) return;
    if (text.size() < width) return each(text);
    for (std::size_t at = 0; at + width <= text.size(); at += stride) each(text.substr(at, width));
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::data
