// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/float16.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn::detail {

/// A context's factor on the gradients of its losses. Empty unless activations are float16.
template <class Scalar>
class LossScale {
 public:
  static constexpr void set_in_backward(bool) noexcept {}
  static constexpr void expect_scaled() noexcept {}
};

template <>
class LossScale<float16> {
 public:
  /// Binds the factor, in the context's space. It is read whenever a loss's gradient is stored, also when a recorded
  /// pass is replayed. Without it, gradients are not scaled.
  void bind(float const* scale) noexcept { scale_ = scale; }
  [[nodiscard]] float const* get() const noexcept { return scale_; }

  void set_in_backward(bool in) noexcept { in_backward_ = in; }
  /// Rejects gradients that a loss writes in forward without scaling: the following layers expect scaled ones.
  /// @throws ConfigError
  void expect_scaled() const {
    expect<ConfigError>(!scale_ || in_backward_, [] {
      return "a loss calls Context::gradient, but with float16 activations the gradient of a loss is scaled: call "
             "nn::Staging::loss_gradient instead; see docs/how-to/add-a-layer.md";
    });
  }

 private:
  float const* scale_ = nullptr;
  bool in_backward_ = false;
};

}}}  // namespace lockstep::nn::detail
