// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <type_traits>

#include <lockstep/kernel/loss/ctc.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/layout_of.hpp>
#include <lockstep/nn/autograd/loss.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/autograd/staging.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

using kernel::CtcDivisor;
using kernel::CtcOptions;

/// Connectionist temporal classification, for labels without times in speech, handwriting or signs. The loss is the sum
/// over the sequences of -log of the probability that the logits of the tokens spell the labels, over all alignments.
/// The weight is the number of sequences. The sum equals torch.nn.functional.ctc_loss of log_softmax(logits) with
/// reduction='sum'. With CtcDivisor::labels, the mean equals PyTorch's, which also divides each sequence by its number
/// of labels. While recording, forward also writes the gradient of the sum next to the logits.
/// @shape logits.tokens [slots, classes], one class of which is the blank
/// @shape labels a column of sequences of integers, padded or ragged, in [0, classes) without the blank
/// @determinism bitwise, for any number of threads
/// @throws ShapeError if logits and labels have different numbers of sequences; ConfigError for a blank that is no
/// class
/// @throws RowError (at Contract::normal) for a label outside the classes, or for fewer tokens than labels need
template <class Context, class Labels>
requires SequenceColumn<Labels, typename Context::Space>
[[nodiscard]] LossOf<Context> ctc_loss(Context& context, SequenceOf<Context> const& logits, Labels const& labels,
                                       CtcOptions const& options = {}) {
  using Space = typename Context::Space;
  using Operand = LossOperand<Context>;
  using Kernel = kernel::Ctc<Space>;
  using Label = std::remove_const_t<std::remove_pointer_t<decltype(labels.values.data)>>;
  static_assert(std::is_integral_v<Label> || std::is_enum_v<Label>,
                "Lockstep: ctc_loss takes sequences of integers or enumerators as labels");
  context.cache().expect_whole_sequences("ctc_loss");
  auto const rows = logits.layout.rows, slots = logits.layout.slots;
  auto const of_labels = layout_of<Space>(labels, logits.layout.positions);
  auto const losses = context.template temporary<double>(Extents<1>{rows}),
             weights = context.template temporary<double>(Extents<1>{rows});
  Staging work(context);
  auto const gradient = work.loss_gradient(logits.tokens);
  auto const memory =
      work.temporary(Extents<1>{Kernel::memory_elements(slots, rows, of_labels.length, logits.width())});
  Kernel::template forward_backward<Operand>(
      context.stream(), logits.layout, of_labels, options, work.read_for_loss(logits.tokens.value),
      TensorView<Label const, 1, Space>{labels.values.data, {labels.values.size()}}, losses, weights,
      {gradient.data, logits.tokens.value.extent}, gradient.write, memory);
  return Loss<Space>::of(context, losses, weights);
}
/// Rejects logits that are no Sequence at compile time.
template <class Context, detail::NotSequence<Context> Input, class Labels>
[[nodiscard]] LossOf<Context> ctc_loss(Context& context, Input const& logits, Labels const& labels,
                                       CtcOptions const& options = {}) {
  return ctc_loss(context, detail::reject_non_sequence<Context>(logits), labels, options);
}

}}}  // namespace lockstep::nn
