// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/transformer/detail/residual_connection.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn::detail {

/// Equal layers, one after another, named "0", "1", and so on.
template <class Layer>
class LayerStack {
 public:
  /// @param name of the stack, for messages
  LayerStack(char const* name, Index layers, typename Layer::Options const& options) {
    expect<ConfigError>(layers >= 0, [&] {
      return std::string(name) + ": " + std::to_string(layers) + " layers; it must be at least 0";
    });
    layers_.assign(static_cast<std::size_t>(layers), Layer(options));
  }

  void visit(auto&& each) {
    for (std::size_t i = 0; i < layers_.size(); ++i) each(std::to_string(i), layers_[i]);
  }

  /// Applies each layer to the result of the previous one. `memory` is the memory of decoder layers.
  template <class Context, class... Memory>
  [[nodiscard]] SequenceOf<Context> forward(Context& context, SequenceOf<Context> x, Memory const&... memory) const {
    auto use = InputUse::shared;  // the caller may read its x again
    for (auto const& layer : layers_) {
      x = layer.forward(context, x, memory..., use);
      use = InputUse::last;
    }
    return x;
  }

 private:
  std::vector<Layer> layers_;
};

}}}  // namespace lockstep::nn::detail
