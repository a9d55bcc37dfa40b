// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/nn/context.hpp>
#include <lockstep/nn/sequence.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

/// What `encode()` returns: a Sequence, the memory that a decoder attends to. Where a train::Predictor goes on token by
/// token, `begin` runs it, on whole sequences, and keeps what it made; `next` takes that in its place, so that what the
/// encoder reads may be absent from the batch. Everywhere else it is a call, and nothing more.
/// @determinism that of encode
template <class Context, class Encode>
[[nodiscard]] SequenceOf<Context> encode_once(Context& context, Encode const& encode) {
  if constexpr (Context::Space::host_accessible)
    if (context.keeps_tokens()) return context.template memory<SequenceOf<Context>>(encode);
  return encode();
}

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
