// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/nn/detail/argument_checks.hpp>
#include <lockstep/nn/elementwise/elu.hpp>
#include <lockstep/nn/elementwise/gelu.hpp>
#include <lockstep/nn/elementwise/gelu_tanh.hpp>
#include <lockstep/nn/elementwise/hardsigmoid.hpp>
#include <lockstep/nn/elementwise/hardswish.hpp>
#include <lockstep/nn/elementwise/leaky_relu.hpp>
#include <lockstep/nn/elementwise/mish.hpp>
#include <lockstep/nn/elementwise/relu.hpp>
#include <lockstep/nn/elementwise/relu6.hpp>
#include <lockstep/nn/elementwise/sigmoid.hpp>
#include <lockstep/nn/elementwise/silu.hpp>
#include <lockstep/nn/elementwise/softplus.hpp>
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
/// nn::gelu_tanh as a layer.
struct GELUTanh {
  /// Does nothing: the layer has no parameters.
  void visit(auto&&) {}
  /// Returns nn::gelu_tanh of x, in the shape of x.
  [[nodiscard]] auto forward(detail::IsContext auto& context, auto const& x) const { return gelu_tanh(context, x); }
};
/// nn::elu as a layer.
struct ELU {
  double alpha = 1;  ///< negative limit, at least 0

  /// Does nothing: the layer has no parameters.
  void visit(auto&&) {}
  /// Returns nn::elu of x, in the shape of x.
  [[nodiscard]] auto forward(detail::IsContext auto& context, auto const& x) const { return elu(context, x, alpha); }
};
/// nn::softplus as a layer.
struct Softplus {
  double beta = 1;  ///< sharpness, above 0

  /// Does nothing: the layer has no parameters.
  void visit(auto&&) {}
  /// Returns nn::softplus of x, in the shape of x.
  [[nodiscard]] auto forward(detail::IsContext auto& context, auto const& x) const {
    return softplus(context, x, beta);
  }
};
/// nn::mish as a layer.
struct Mish {
  /// Does nothing: the layer has no parameters.
  void visit(auto&&) {}
  /// Returns nn::mish of x, in the shape of x.
  [[nodiscard]] auto forward(detail::IsContext auto& context, auto const& x) const { return mish(context, x); }
};
/// nn::relu6 as a layer.
struct ReLU6 {
  /// Does nothing: the layer has no parameters.
  void visit(auto&&) {}
  /// Returns nn::relu6 of x, in the shape of x.
  [[nodiscard]] auto forward(detail::IsContext auto& context, auto const& x) const { return relu6(context, x); }
};
/// nn::hardsigmoid as a layer.
struct Hardsigmoid {
  /// Does nothing: the layer has no parameters.
  void visit(auto&&) {}
  /// Returns nn::hardsigmoid of x, in the shape of x.
  [[nodiscard]] auto forward(detail::IsContext auto& context, auto const& x) const { return hardsigmoid(context, x); }
};
/// nn::hardswish as a layer.
struct Hardswish {
  /// Does nothing: the layer has no parameters.
  void visit(auto&&) {}
  /// Returns nn::hardswish of x, in the shape of x.
  [[nodiscard]] auto forward(detail::IsContext auto& context, auto const& x) const { return hardswish(context, x); }
};

}}}  // namespace lockstep::nn
