// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <lockstep/nn/autograd/variable_of.hpp>
#include <lockstep/nn/convolution/pad.hpp>
#include <lockstep/nn/convolution/upsample.hpp>
#include <lockstep/nn/elementwise/multiply.hpp>
#include <lockstep/nn/indexing/permute.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/binary_cross_entropy_with_logits.hpp>
#include <lockstep/nn/loss/huber_loss.hpp>
#include <lockstep/nn/loss/kl_to_standard_normal.hpp>
#include <lockstep/nn/loss/mean_absolute_error.hpp>
#include <lockstep/nn/loss/mean_squared_error.hpp>
#include <lockstep/nn/loss/quantile_loss.hpp>
#include <lockstep/nn/module/activation_layers.hpp>
#include <lockstep/nn/normalization/log_softmax.hpp>
#include <lockstep/nn/pooling/space_pooling.hpp>
#include <lockstep/nn/recurrent/recurrent.hpp>
#include <lockstep/nn/transformer/gated_feed_forward.hpp>

#include "every_layer.hpp"

namespace lockstep_test {

/// Operations that Everything does not have, each with an input of its own. Their inputs are parameters.
class Operations {
 public:
  Operations() {
    auto const add = [&](std::string const& name, Index rows = 16, double deviation = 2) {
      inputs_.emplace_back(name, nn::Parameter{{rows, width}, nn::Initializer::normal(deviation)});
    };
    for (auto const* const name : {"leaky_relu", "gelu_tanh", "elu", "softplus", "mish", "relu6", "hardsigmoid",
                                   "hardswish", "log_softmax", "logits", "huber", "mean"})
      add(name);
    add("log_deviation", 16, 0.5);
    // A factor for each result, so that its gradient is another at each place.
    for (auto const& [name, rows] : {std::pair{"transposed", 16},
                                     {"permuted", 16},
                                     {"zeros", 30},
                                     {"circular", 64},
                                     {"nearest", 64},
                                     {"linear", 64},
                                     {"linear_aligned", 64},
                                     {"adaptive", 6},
                                     {"absolute", 16},
                                     {"quantile", 16}})
      add(name), add(name + std::string("_factor"), rows);
  }
  void visit(auto&& each) {
    for (auto& [name, input] : inputs_) each(name, input);
    each("number", number_), each("steps", steps_), each("gated", gated_);
  }
  template <class Context, class Space = typename Context::Space>
  nn::Loss<Space> forward(Context& context, Mixed::Batch<Space> const& batch) const {
    std::size_t used = 0;
    auto const next = [&] { return nn::variable_of<2>(context, inputs_[used++].second); };
    auto const numbers = nn::sequence_of(context, batch.numbers, batch.places);
    auto const states = steps_.forward(context, number_.forward(context, numbers));
    auto loss = nn::mean_squared_error(context, nn::mean_pool(context, states), 1);
    auto const add = [&](nn::Loss<Space> const& part) { loss = loss.with_auxiliary(part); };
    auto const add_square = [&](auto const& y) { add(nn::mean_squared_error(context, y, 1)); };
    std::apply([&](auto const&... layer) { (add_square(layer.forward(context, next())), ...); },
               std::tuple{nn::LeakyReLU{}, nn::GELUTanh{}, nn::ELU{0.5}, nn::Softplus{2}, nn::Mish{}, nn::ReLU6{},
                          nn::Hardsigmoid{}, nn::Hardswish{}});
    for (auto const activation : {nn::Activation::gelu_tanh, nn::Activation::silu})
      add_square(nn::mean_pool(context, number_.forward(context, numbers, activation)));
    add_square(nn::mean_pool(context, gated_.forward(context, number_.forward(context, numbers))));
    add_square(nn::log_softmax(context, next()));
    add(nn::binary_cross_entropy_with_logits(context, next(), 0.9));
    add(nn::huber_loss(context, next(), 1));
    auto const mean = next();
    add(nn::kl_to_standard_normal(context, mean, next(), {.factor = 0.01}));

    auto const times_factor = [&](auto const& y) {
      return nn::multiply(context, y.reshape(lockstep::Extents<2>{y.value.size() / width, width}), next());
    };
    auto const image = [&] { return next().reshape(lockstep::Extents<4>{2, 4, 4, width / 2}); };
    add_square(times_factor(nn::permute(context, next(), {1, 0})));
    add_square(times_factor(nn::permute(context, image(), {1, 3, 0, 2})));
    add_square(times_factor(
        nn::Pad2d({.padding = {1, 0}, .after = {0, 2}, .mode = nn::PadMode::zero}).forward(context, image())));
    add_square(times_factor(nn::Pad2d({.padding = 2}).forward(context, image())));
    for (auto const mode : {nn::UpsampleMode::nearest, nn::UpsampleMode::linear, nn::UpsampleMode::linear_aligned})
      add_square(times_factor(nn::Upsample2d(2, mode).forward(context, image())));
    add_square(times_factor(nn::AdaptiveAvgPool2d({3, 2}).forward(context, image())));
    add(nn::mean_absolute_error(context, times_factor(next()), 1));
    add(nn::quantile_loss(context, times_factor(next()), 1, {.quantile = 0.8}));
    return loss;
  }

 private:
  static constexpr Index width = 24;

  std::vector<std::pair<std::string, nn::Parameter>> inputs_;
  nn::Linear number_{1, width};
  nn::RNN steps_{width, width};
  nn::GatedFeedForward gated_{{.width = width, .inner = 2 * width, .activation = nn::Activation::silu}};
};

}  // namespace lockstep_test
