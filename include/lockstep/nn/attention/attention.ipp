// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/shortest.hpp>
#include <lockstep/nn/attention/attention.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

LOCKSTEP_INLINE MultiHeadAttention::MultiHeadAttention(Options const& options)
    : head_width_(head_width_of(options)),
      queries_per_key_(options.key_heads == 0 ? 1 : options.heads / options.key_heads),
      query_(options.width, options.heads * head_width_, options.bias),
      key_(options.width, options.heads / queries_per_key_ * head_width_, options.bias),
      value_(options.width, options.heads / queries_per_key_ * head_width_, options.bias),
      output_(options.heads * head_width_, options.width, options.bias),
      heads_(options.heads),
      scale_(options.scale.value_or(1 / std::sqrt(static_cast<double>(head_width_)))),
      causal_(options.causal),
      rotary_base_(options.rotary_base),
      dropout_(options.dropout) {
  if (rotary_base_ == 0) return;
  expect<ConfigError>(rotary_base_ > 1 && std::isfinite(rotary_base_), [&] {
    return "MultiHeadAttention: rotary_base is " + shortest(rotary_base_) +
           "; it must be above 1, such as 10000, or 0 for none";
  });
  expect<ShapeError>(head_width_ % 2 == 0, [&] {
    return "MultiHeadAttention: heads are " + std::to_string(head_width_) +
           " channels wide; rotary positions turn two at a time, so the width must be even";
  });
}

LOCKSTEP_INLINE void MultiHeadAttention::check(Index rows, Index memory_rows, Extents<2> bias, Index distances) const {
  expect<ShapeError>(rows == memory_rows, [&] {
    return name() + ": " + std::to_string(rows) + " sequences attend to " + std::to_string(memory_rows) +
           "; each sequence needs its own memory";
  });
  expect<ShapeError>(distances == 0 || bias == Extents<2>{heads_, distances}, [&] {
    return name() + ": bias is " + to_string(bias) + "; " + std::to_string(heads_) + " heads and " +
           std::to_string(distances) + " distances need " + to_string(Extents<2>{heads_, distances}) +
           "; make it for these lengths";
  });
}

LOCKSTEP_INLINE Index MultiHeadAttention::head_width_of(Options const& options) {
  expect<ShapeError>(options.key_heads == 0 || (options.key_heads >= 1 && options.key_heads <= options.heads &&
                                                options.heads % options.key_heads == 0),
                     [&] {
                       return "MultiHeadAttention: " + std::to_string(options.key_heads) + " key heads do not divide " +
                              std::to_string(options.heads) +
                              " heads; each key head must serve the same number of heads";
                     });
  if (options.head_width != 0) {
    expect<ConfigError>(options.head_width >= 1 && options.heads >= 1, [&] {
      return "MultiHeadAttention: " + std::to_string(options.heads) + " heads of width " +
             std::to_string(options.head_width) + "; both must be at least 1";
    });
    return options.head_width;
  }
  expect<ShapeError>(options.heads >= 1 && options.width % options.heads == 0, [&] {
    return "MultiHeadAttention: " + std::to_string(options.heads) + " heads do not divide a width of " +
           std::to_string(options.width) + "; each head takes an equal share of it, or give .head_width";
  });
  return options.width / options.heads;
}

}}}  // namespace lockstep::nn
