// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn::detail {

/// Returns the Variable of a Sequence, or the Variable itself.
template <class Made>
[[nodiscard]] auto tokens_of(Made const& made) noexcept {
  if constexpr (requires { made.tokens; }) {
    return made.tokens;
  } else {
    return made;
  }
}

/// Returns `made` with its Variable replaced.
template <class Made, class Tokens>
[[nodiscard]] auto with_tokens(Made const& made, Tokens const& tokens) noexcept {
  if constexpr (requires { made.tokens; }) {
    return made.with(tokens);
  } else {
    return tokens;
  }
}

}}}  // namespace lockstep::nn::detail
