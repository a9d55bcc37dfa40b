// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <tuple>
#include <utility>

#include <lockstep/core/version.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// A layer with its own name in a Sequential.
template <class Layer>
struct Named {
  char const* name;  ///< prefix of its parameters; must outlive the layer
  Layer layer;       ///< layer, or function of context and x
};
/// Takes the type of the layer from the second argument.
template <class Layer>
Named(char const*, Layer) -> Named<Layer>;

/// Chain of layers: y = c(b(a(x))) for Sequential{a, b, c}. A layer has `forward(context, x)`, or is a function of
/// context and x, such as `[](auto& context, auto x) { return nn::gelu(context, x); }`. Parameter names begin with the
/// layer's index, "0.weight", or with the name in `Named{"input", a}`. Activations are layers, too: ReLU{}.
/// @determinism as the layers
template <class... Layers>
class Sequential : detail::RejectedCalls<2> {
 public:
  /// Takes the layers in the order of the forward pass.
  explicit Sequential(Layers... layers) : layers_(std::move(layers)...) {}

  /// Names the layers "0", "1" and so on, or as Named says. Functions have no name.
  void visit(auto&& each) { visit(each, std::index_sequence_for<Layers...>{}); }

  /// Returns the last layer's output.
  template <detail::IsContext Context, class Input>
  [[nodiscard]] auto forward(Context& context, Input const& x) const {
    return from<0>(context, x);
  }
  /// Passes further arguments to the layers that take them, such as the positions that key Dropout and StochasticDepth
  /// of Variables: `layers.forward(context, x, batch.positions())`.
  template <detail::IsContext Context, class Input, class... More>
  requires(sizeof...(More) > 0)
      [[nodiscard]] auto forward(Context& context, Input const& x, More const&... more) const {
    return from<0>(context, x, more...);
  }
  /// Rejects calls without the context in front, or without an input, at compile time.
  using detail::RejectedCalls<2>::forward;

 private:
  template <std::size_t... Indices>
  void visit(auto&& each, std::index_sequence<Indices...>) {
    (visit_one<Indices>(each, std::get<Indices>(layers_)), ...);
  }
  template <std::size_t Position, class Layer>
  static void visit_one(auto&& each, Layer& layer) {
    if constexpr (requires { layer.visit(each); }) each(std::to_string(Position), layer);
  }
  template <std::size_t Position, class Layer>
  static void visit_one(auto&& each, Named<Layer>& named) {
    if constexpr (requires { named.layer.visit(each); }) each(named.name, named.layer);
  }

  template <std::size_t Position, class Context, class Input, class... More>
  auto from(Context& context, Input const& x, More const&... more) const {
    if constexpr (Position == sizeof...(Layers)) {
      return x;
    } else {
      return from<Position + 1>(context, call(std::get<Position>(layers_), context, x, more...), more...);
    }
  }
  template <class Layer, class Context, class Input, class... More>
  static auto call(Layer const& layer, Context& context, Input const& x, More const&... more) {
    if constexpr (requires { layer(context, x); }) {
      return layer(context, x);
    } else if constexpr (requires { layer.forward(context, x, more...); }) {
      return layer.forward(context, x, more...);
    } else {
      return layer.forward(context, x);
    }
  }
  template <class Layer, class Context, class Input, class... More>
  static auto call(Named<Layer> const& named, Context& context, Input const& x, More const&... more) {
    return call(named.layer, context, x, more...);
  }

  std::tuple<Layers...> layers_;
};

}}}  // namespace lockstep::nn
