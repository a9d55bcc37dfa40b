// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <span>
#include <string_view>
#include <type_traits>

#include <lockstep/core/index.hpp>

namespace lockstep::inline LOCKSTEP_ABI::optim::detail {

/// What could be a rule of parameters, were it the plain `Function` that optimizers hold.
template <class F, class Function>
concept Capturing =
    !std::convertible_to<F, Function> && std::is_invocable_v<F, std::string_view, std::span<Index const>>;

/// Says so. It does not compile.
template <class F>
constexpr void refuse_capturing() {
  static_assert(!std::is_same_v<F, F>,
                "Lockstep: a rule of parameters is a lambda without captures: let it read what it needs from constants "
                "or global variables");
}

}  // namespace lockstep::inline LOCKSTEP_ABI::optim::detail
