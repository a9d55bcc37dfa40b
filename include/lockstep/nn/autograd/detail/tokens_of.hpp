// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn::detail {

/// Returns the Variable of a Sequence, or the Variable itself.
template <class Result>
[[nodiscard]] auto tokens_of(Result const& result) noexcept {
  if constexpr (requires { result.tokens; }) {
    return result.tokens;
  } else {
    return result;
  }
}

/// Returns `result` with its Variable replaced.
template <class Result, class Tokens>
[[nodiscard]] auto with_tokens(Result const& result, Tokens const& tokens) {
  if constexpr (requires { result.tokens; }) {
    return result.with(tokens);
  } else {
    return tokens;
  }
}

}}}  // namespace lockstep::nn::detail
