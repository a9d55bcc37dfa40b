// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/nn/embedding/fused_embedding.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

LOCKSTEP_INLINE FusedEmbedding::FusedEmbedding(Options const& options)
    : token_(table(options.vocabulary, options.width, options.token_gradient)),
      position_(table(options.length, options.width, GradientForm::dense)),
      type_(table(options.types, options.width, GradientForm::dense)),
      weight_{{options.width}, Initializer::constant(1)},
      bias_{{options.width}, Initializer::constant(0)},
      options_(options),
      dropout_(options.dropout) {
  for (auto const& [name, size, min] : {std::tuple{"vocabulary", options.vocabulary, 0},
                                        {"length", options.length, 0},
                                        {"width", options.width, 1},
                                        {"types", options.types, 0}})
    expect<ConfigError>(size >= min, [&, n = name, s = size, m = min] {
      return "FusedEmbedding: " + std::string(n) + " is " + std::to_string(s) + "; it must be at least " +
             std::to_string(m);
    });
  expect<ConfigError>(options.epsilon > 0, [&] {
    return "FusedEmbedding: epsilon is " + std::to_string(options.epsilon) + "; it must be above 0";
  });
}

LOCKSTEP_INLINE Parameter FusedEmbedding::table(Index rows, Index width, GradientForm gradient) {
  return {.shape = {rows, width}, .initializer = Initializer::normal(0.02), .gradient_form = gradient};
}

LOCKSTEP_INLINE Parameter const& FusedEmbedding::named() const noexcept {
  if (options_.vocabulary > 0) return token_;
  return options_.length > 0 ? position_ : type_;
}

}}}  // namespace lockstep::nn
