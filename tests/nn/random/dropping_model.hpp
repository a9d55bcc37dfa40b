// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/nn/autograd/loss.hpp>
#include <lockstep/nn/autograd/parameter.hpp>
#include <lockstep/nn/autograd/sequence.hpp>

#include "nn/sequence_model.hpp"

namespace lockstep_test {

/// A layer that drops parts of a learned parameter, by the samples' positions: of sequences or, with slots of one token
/// each and no lengths, of one vector per sample.
template <class Layer>
struct DroppingModel {
  nn::Parameter x;
  Layer layer;
  bool vectors;
  DroppingModel(TokenBatch const& batch, double probability, bool one_vector_each = false)
      : x{{batch.rows * (one_vector_each ? 1 : batch.length), 10}, nn::Initializer::normal(1)},
        layer(probability),
        vectors(one_vector_each) {}
  void visit(auto&& each) {
    each("x", x);
    each("layer", layer);
  }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, TokenBatch const& batch) const {
    auto const in = learned(context, x);
    auto const layout = batch.layout();
    if (vectors) return irregular_loss(context, layer.forward(context, in, batch.places()));
    nn::SequenceOf<Context> const sequence{in, layout};
    return irregular_loss(context, layer.forward(context, sequence).tokens, &layout);
  }
};

}  // namespace lockstep_test
