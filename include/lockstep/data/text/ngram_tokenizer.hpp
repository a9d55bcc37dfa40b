// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Splits a text into runs of `width` bytes, one from every `stride`-th byte; width 1 gives single bytes. A text
/// shorter than `width` is one token. Suits source code, in which spelling is more informative than words.
struct NgramTokenizer {
  std::size_t width = 3;   ///< bytes of a token, at least 1
  std::size_t stride = 1;  ///< bytes between the beginnings of tokens, at least 1

  /// Calls `each(token)` for every token in order.
  /// @throws ConfigError unless width and stride are at least 1
  template <class Each>
  void operator()(std::string_view text, Each&& each) const {
    expect<ConfigError>(width >= 1 && stride >= 1, [&] {
      return "NgramTokenizer: width " + std::to_string(width) + ", stride " + std::to_string(stride) +
             "; both must be at least 1";
    });
    if (text.empty()) return;
    if (text.size() < width) return each(text);
    for (;; text.remove_prefix(stride)) {
      each(text.substr(0, width));
      if (text.size() - width < stride) return;
    }
  }
};

}}}  // namespace lockstep::data
