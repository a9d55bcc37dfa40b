// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <type_traits>

#include <lockstep/kernel/cross_entropy.hpp>
#include <lockstep/nn/context.hpp>
#include <lockstep/nn/loss.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

/// Sum over rows of -log softmax(logits)[label]; the weight is the number of rows.
/// While recording, the gradient of the sum is left beside the logits at once: one pass serves forward and backward.
/// @shape logits [rows, classes]   @shape labels [rows], integers in [0, classes)
/// @throws DataError (at Contract::normal) for a label outside the classes, with row, label and range
template <class Context, class Label>
[[nodiscard]] Loss<typename Context::Space> cross_entropy(Context& context,
                                                          typename Context::template Variable<2> logits,
                                                          TensorView<Label, 1, typename Context::Space> labels) {
  static_assert(std::is_integral_v<Label> || std::is_enum_v<Label>,
                "Lockstep: cross_entropy takes integers or enumerators as labels, one per row");
  using Scalar = typename Context::Scalar;
  auto losses = context.template temporary<double>(Extents<1>{logits.extent(0)});
  auto const gradient = context.gradient(logits);
  kernel::CrossEntropy<typename Context::Space>::template forward_backward<Scalar>(
      context.stream(), logits.value, labels, losses, {gradient.data, logits.value.extent}, gradient.write);
  Loss<typename Context::Space> loss{0, static_cast<double>(logits.extent(0))};
  for (double row : losses.span()) loss.sum += row;
  return loss;
}

/// The same for a column of a batch: anything that holds the labels as `.values`.
template <class Context, class Column>
requires requires(Column const& column) { column.values; }
[[nodiscard]] Loss<typename Context::Space> cross_entropy(Context& context,
                                                          typename Context::template Variable<2> logits,
                                                          Column const& labels) {
  return cross_entropy(context, logits, labels.values);
}

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
