// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <tuple>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/sequence/strided_rows.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/autograd/staging.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Returns the tokens of one segment of sequences that `interleave` assembled, for example the states from which a
/// model predicts actions.
/// @param number index of the segment, from 0
/// @param segment layout of the segment's own tokens
/// @shape x.tokens [segment.slots * segments, width]   @shape returns tokens [segment.slots, width]
/// @throws ShapeError if the slots of x are no multiple of the segment's slots, or if x has no segment `number`
template <class Context>
[[nodiscard]] SequenceOf<Context> segment_of(Context& context, SequenceOf<Context> const& x, Index number,
                                             SequenceLayout<typename Context::Space> const& segment) {
  using Operand = nn::Operand<Context>;
  using Kernel = kernel::StridedRows<typename Context::Space>;
  auto const slots = segment.slots, stride = slots == 0 ? number + 1 : x.layout.slots / slots;
  expect<ShapeError>(x.layout.slots == slots * stride && number >= 0 && number < stride, [&] {
    return "segment_of: segment " + std::to_string(number) + " with " + std::to_string(slots) +
           " slots out of sequences with " + std::to_string(x.layout.slots) +
           "; interleaved segments have the same number of slots, and are numbered from 0";
  });
  auto const y = context.template variable<2>({slots, x.width()});
  Staging work(context);
  Kernel::template forward<Operand>(context.stream(), work.read(x.tokens.value), stride, number, work.write(y.value));
  context.on_backward(y, std::tuple{}, [x = x.tokens, y, stride, number](Context& c) {
    Staging back(c);
    if (auto const dx = back.gradient(x))
      Kernel::template backward<Operand>(c.stream(), back.read(y.gradient()), stride, number, {dx.data, x.value.extent},
                                         dx.write);
  });
  return {y, segment};
}

}}}  // namespace lockstep::nn
