// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/nn/detail/argument_checks.hpp>
#include <lockstep/nn/elementwise/gelu.hpp>
#include <lockstep/nn/elementwise/leaky_relu.hpp>
#include <lockstep/nn/elementwise/relu.hpp>
#include <lockstep/nn/elementwise/sigmoid.hpp>
#include <lockstep/nn/elementwise/silu.hpp>
#include <lockstep/nn/elementwise/tanh.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

// Activations as layers without parameters, for Sequential{Linear{2, 8}, ReLU{}, Linear{8, 1}}. Each takes and returns
// a Variable or a Sequence, and is as deterministic as its function.

/// nn::relu as a layer.
struct ReLU {
  /// Does nothing: the layer has no parameters.
  void visit(auto&&) {}
  /// Returns nn::relu of x, in the shape of x.
  [[nodiscard]] auto forward(detail::IsContext auto& context, auto const& x) const { return relu(context, x); }
};
/// nn::leaky_relu as a layer.
struct LeakyReLU {
  double slope = 0.01;  ///< for x below 0

  /// Does nothing: the layer has no parameters.
  void visit(auto&&) {}
  /// Returns nn::leaky_relu of x, in the shape of x.
  [[nodiscard]] auto forward(detail::IsContext auto& context, auto const& x) const {
    return leaky_relu(context, x, slope);
  }
};
/// nn::gelu as a layer.
struct GELU {
  /// Does nothing: the layer has no parameters.
  void visit(auto&&) {}
  /// Returns nn::gelu of x, in the shape of x.
  [[nodiscard]] auto forward(detail::IsContext auto& context, auto const& x) const { return gelu(context, x); }
};
/// nn::silu as a layer.
struct SiLU {
  /// Does nothing: the layer has no parameters.
  void visit(auto&&) {}
  /// Returns nn::silu of x, in the shape of x.
  [[nodiscard]] auto forward(detail::IsContext auto& context, auto const& x) const { return silu(context, x); }
};
/// nn::sigmoid as a layer.
struct Sigmoid {
  /// Does nothing: the layer has no parameters.
  void visit(auto&&) {}
  /// Returns nn::sigmoid of x, in the shape of x.
  [[nodiscard]] auto forward(detail::IsContext auto& context, auto const& x) const { return sigmoid(context, x); }
};
/// nn::tanh as a layer.
struct Tanh {
  /// Does nothing: the layer has no parameters.
  void visit(auto&&) {}
  /// Returns nn::tanh of x, in the shape of x.
  [[nodiscard]] auto forward(detail::IsContext auto& context, auto const& x) const { return nn::tanh(context, x); }
};

}}}  // namespace lockstep::nn
