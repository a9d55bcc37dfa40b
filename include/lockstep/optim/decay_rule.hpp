// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <span>
#include <string_view>

#include <lockstep/core/index.hpp>
#include <lockstep/optim/detail/capturing.hpp>

namespace lockstep::inline LOCKSTEP_ABI::optim {

/// Which parameters weight decay applies to, by name ("encoder.0.attention.query.weight") and shape. Holds a plain
/// function, so that optimizers stay plain values: a lambda without captures will do.
class DecayRule {
 public:
  using Function = bool (*)(std::string_view name, std::span<Index const> shape);

  template <std::convertible_to<Function> F>
  constexpr DecayRule(F function)
      : decays_(function) {}  // NOLINT(google-explicit-constructor): stands for the function
  /// Says what it holds, of anything else.
  template <detail::Capturing<Function> F>
  constexpr DecayRule(F const&) {  // NOLINT(google-explicit-constructor): as above
    detail::refuse_capturing<F>();
  }
  constexpr DecayRule() = default;

  [[nodiscard]] bool operator()(std::string_view name, std::span<Index const> shape) const {
    return decays_(name, shape);
  }

  /// Every parameter: PyTorch's default.
  [[nodiscard]] static bool all(std::string_view, std::span<Index const>) noexcept { return true; }
  /// Parameters of two and more axes: neither biases nor the scales of norms.
  [[nodiscard]] static bool matrices(std::string_view, std::span<Index const> shape) noexcept {
    return shape.size() >= 2;
  }

 private:
  Function decays_ = all;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::optim
