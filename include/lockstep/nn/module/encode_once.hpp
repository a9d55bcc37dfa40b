// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/sequence.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Returns the result of `encode()`, a Sequence: the memory that a decoder attends to. When a train::Predictor predicts
/// token by token, its `begin` runs encode on whole sequences and keeps the memory. Its `next` reuses the memory, so
/// the encoder's inputs may be absent from the batch. Otherwise this is a plain call.
/// @determinism as encode
template <class Context, class Encode>
[[nodiscard]] SequenceOf<Context> encode_once(Context& context, Encode const& encode) {
  if constexpr (Context::Space::host_accessible)
    if (context.cache().is_decoding()) return context.cache().template cached_memory<SequenceOf<Context>>(encode);
  return encode();
}

}}}  // namespace lockstep::nn
