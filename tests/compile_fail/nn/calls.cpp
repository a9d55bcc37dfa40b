// SPDX-License-Identifier: Apache-2.0
// LINES 15
// CASE layer_without_context: Lockstep: layers, activations and losses take the context first
// CASE layer_swapped: Lockstep: layers, activations and losses take the context first
// CASE activation_swapped: Lockstep: layers, activations and losses take the context first
// CASE activation_of_column: Lockstep: functions of activations take Variables or Sequences behind the context
// CASE sum_with_column: Lockstep: functions of activations take Variables or Sequences behind the context
// CASE loss_without_context: Lockstep: layers, activations and losses take the context first
// CASE sequence_of_array: Lockstep: nn::sequence_of takes a column of std::vector, whole
// CASE sequence_without_positions: Lockstep: nn::sequence_of takes the positions of the batch's samples
// CASE input_of_batch: Lockstep: context.input takes a column of the batch
// CASE constant_context: Lockstep: the context is const, and forward passes change it
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include <lockstep/data/columns.hpp>
#include <lockstep/nn/autograd/sequence_of.hpp>
#include <lockstep/nn/elementwise/add.hpp>
#include <lockstep/nn/elementwise/gelu.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/cross_entropy.hpp>

using namespace lockstep;
using Context = nn::Context<float, HostSpace>;

struct Sample {
  std::array<float, 2> x;
  std::vector<float> steps;
  std::int32_t label;
};

auto loss(nn::Linear const& linear, Context& context, data::Columns<Sample> const& batch) {
#if defined(CASE_constant_context)
  (void)std::as_const(context).input(batch[&Sample::x].values);
#endif
#if defined(CASE_input_of_batch)
  auto const x = context.input(batch);
#else
  auto const x = context.input(batch[&Sample::x].values);
#endif
#if defined(CASE_layer_without_context)
  auto const hidden = linear.forward(x);
#elif defined(CASE_layer_swapped)
  auto const hidden = linear.forward(x, context);
#else
  auto const hidden = linear.forward(context, x);
#endif
#if defined(CASE_activation_swapped)
  auto const logits = nn::gelu(hidden, context);
#elif defined(CASE_activation_of_column)
  auto const logits = nn::gelu(context, batch[&Sample::x]);
#elif defined(CASE_sum_with_column)
  auto const logits = nn::add(context, hidden, batch[&Sample::x]);
#else
  auto const logits = nn::gelu(context, hidden);
#endif
#if defined(CASE_sequence_of_array)
  static_cast<void>(nn::sequence_of(context, batch[&Sample::x], batch.positions()));
#elif defined(CASE_sequence_without_positions)
  static_cast<void>(nn::sequence_of(context, batch[&Sample::steps]));
#else
  static_cast<void>(nn::sequence_of(context, batch[&Sample::steps], batch.positions()));
#endif
#if defined(CASE_loss_without_context)
  return nn::cross_entropy(logits, batch[&Sample::label]);
#else
  return nn::cross_entropy(context, logits, batch[&Sample::label]);
#endif
}
