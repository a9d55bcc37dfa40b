// SPDX-License-Identifier: Apache-2.0
// LINES 15
// CASE layer_without_context: Lockstep: layers, activations and losses take the context first
// CASE layer_swapped: Lockstep: layers, activations and losses take the context first
// CASE activation_swapped: Lockstep: layers, activations and losses take the context first
// CASE activation_of_column: Lockstep: functions of activations take Variables or Sequences behind the context
// CASE sum_with_column: Lockstep: functions of activations take Variables or Sequences behind the context
// CASE dot_with_column: Lockstep: functions of activations take Variables or Sequences behind the context
// CASE gather_column: Lockstep: nn::all_gather takes rows, a Variable [rows, width]
// CASE gather_numbers: Lockstep: nn::all_gather takes rows, a Variable [rows, width]
// CASE log_softmax_of_column: Lockstep: functions of activations take Variables or Sequences behind the context
// CASE loss_without_context: Lockstep: layers, activations and losses take the context first
// CASE sequence_of_array: Lockstep: nn::sequence_of takes a column of std::vector, whole
// CASE sequence_without_positions: Lockstep: nn::sequence_of takes the positions of the batch's samples
// CASE input_of_batch: Lockstep: context.input takes a column of the batch
// CASE layer_without_input: Lockstep: layers take an input behind the context, a Variable or a Sequence
// CASE sequence_layer_without_input: Lockstep: layers take an input behind the context, a Variable or a Sequence
// CASE fused_string: Lockstep: a layer's activation is nn::Activation::gelu, gelu_tanh, silu, relu or none
// CASE fused_function: Lockstep: a layer's activation is nn::Activation::gelu, gelu_tanh, silu, relu or none
// CASE fused_layer: Lockstep: a layer's activation is nn::Activation::gelu, gelu_tanh, silu, relu or none
// CASE feed_forward_string: Lockstep: a layer's activation is nn::Activation::gelu, gelu_tanh, silu, relu or none
// CASE feed_forward_function: Lockstep: a layer's activation is nn::Activation::gelu, gelu_tanh, silu, relu or none
// CASE encoder_string: Lockstep: a layer's activation is nn::Activation::gelu, gelu_tanh, silu, relu or none
// CASE encoder_function: Lockstep: a layer's activation is nn::Activation::gelu, gelu_tanh, silu, relu or none
// CASE norm_function: Lockstep: a layer's activation is nn::Activation::gelu, gelu_tanh, silu, relu or none
// CASE bias_flag: Lockstep: Linear takes nn::Bias::none in place of false
// CASE softmax_without_context: Lockstep: layers, activations and losses take the context first
// CASE sum_with_number: Lockstep: an activation is multiplied by a number by nn::scale(context, x, factor)
// CASE number_first: Lockstep: an activation is multiplied by a number by nn::scale(context, x, factor)
// CASE negative: Lockstep: an activation is multiplied by a number by nn::scale(context, x, factor)
// CASE quotient: Lockstep: an activation is multiplied by a number by nn::scale(context, x, factor)
// CASE loss_without_labels: Lockstep: losses take a column of the batch behind the prediction
// CASE loss_of_batch: Lockstep: losses take a column of the batch behind the prediction
// CASE loss_of_member: Lockstep: losses take a column of the batch behind the prediction
// CASE distance_without_target: Lockstep: losses take a column of the batch behind the prediction
// CASE state_without_cell: Lockstep: an LSTM begins from a state and a cell
// CASE cell_of_gru: Lockstep: only an LSTM has a cell
// CASE constant_context: Lockstep: the context is const, and forward passes change it
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include <lockstep/data/columns.hpp>
#include <lockstep/nn/autograd/sequence_of.hpp>
#include <lockstep/nn/contrastive/all_gather.hpp>
#include <lockstep/nn/contrastive/dot_by_row.hpp>
#include <lockstep/nn/elementwise/add.hpp>
#include <lockstep/nn/elementwise/gelu.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/cross_entropy.hpp>
#include <lockstep/nn/loss/mean_squared_error.hpp>
#include <lockstep/nn/module/activation_layers.hpp>
#include <lockstep/nn/normalization/batch_norm.hpp>
#include <lockstep/nn/normalization/log_softmax.hpp>
#include <lockstep/nn/normalization/softmax.hpp>
#include <lockstep/nn/recurrent/recurrent.hpp>
#include <lockstep/nn/transformer/feed_forward.hpp>
#include <lockstep/nn/transformer/transformer_encoder.hpp>

using namespace lockstep;
using Context = nn::Context<float, HostSpace>;

struct Sample {
  std::array<float, 2> x;
  std::vector<float> steps;
  std::int32_t label;
};

struct Layers {
#if defined(CASE_bias_flag)
  nn::Linear linear{2, 2, false};
#else
  nn::Linear linear{2, 2, nn::Bias::none};
#endif
#if defined(CASE_feed_forward_string)
  nn::FeedForward feed_forward{2, 4, 0, "gelu"};
#elif defined(CASE_feed_forward_function)
  nn::FeedForward feed_forward{2, 4, 0, nn::gelu};
#else
  nn::FeedForward feed_forward{2, 4, 0, nn::Activation::gelu};
#endif
#if defined(CASE_encoder_string)
  nn::TransformerEncoder encoder{{.layers = 1, .width = 2, .heads = 1, .feed_forward = 4, .activation = "gelu"}};
#elif defined(CASE_encoder_function)
  nn::TransformerEncoder encoder{{.layers = 1, .width = 2, .heads = 1, .feed_forward = 4, .activation = nn::gelu}};
#else
  nn::TransformerEncoder encoder{
      {.layers = 1, .width = 2, .heads = 1, .feed_forward = 4, .activation = nn::Activation::relu}};
#endif
#if defined(CASE_norm_function)
  nn::BatchNorm norm{2, {.activation = nn::gelu}};
#else
  nn::BatchNorm norm{2, {.activation = nn::Activation::relu}};
#endif
  nn::LSTM lstm{2, 2};
  nn::GRU gru{2, 2};
};

auto encode(Layers const& layers, Context& context, nn::Sequence<float, HostSpace> const& x) {
#if defined(CASE_sequence_layer_without_input)
  return layers.feed_forward.forward(context, layers.encoder.forward(context));
#else
  return layers.feed_forward.forward(context, layers.encoder.forward(context, x));
#endif
}

auto remember(Layers const& layers, Context& context, nn::Sequence<float, HostSpace> const& x,
              nn::Variable<float, 2, HostSpace> const& state) {
#if defined(CASE_cell_of_gru)
  auto const y = layers.gru.forward(context, x, state, state);
#else
  auto const y = layers.gru.forward(context, x, state);
#endif
#if defined(CASE_state_without_cell)
  return layers.lstm.forward(context, y, state);
#else
  return layers.lstm.forward(context, y, state, state);
#endif
}

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
#elif defined(CASE_layer_without_input)
  auto const hidden = linear.forward(context);
#elif defined(CASE_fused_string)
  auto const hidden = linear.forward(context, x, "gelu");
#elif defined(CASE_fused_function)
  auto const hidden = linear.forward(context, x, nn::gelu);
#elif defined(CASE_fused_layer)
  auto const hidden = linear.forward(context, x, nn::GELU{});
#else
  auto const hidden = linear.forward(context, x, nn::Activation::none);
#endif
#if defined(CASE_activation_swapped)
  auto const logits = nn::gelu(hidden, context);
#elif defined(CASE_activation_of_column)
  auto const logits = nn::gelu(context, batch[&Sample::x]);
#elif defined(CASE_softmax_without_context)
  auto const logits = nn::softmax(hidden);
#elif defined(CASE_log_softmax_of_column)
  auto const logits = nn::log_softmax(context, batch[&Sample::x]);
#elif defined(CASE_dot_with_column)
  auto const logits = nn::dot_by_row(context, hidden, batch[&Sample::x]);
#elif defined(CASE_sum_with_number)
  auto const logits = hidden + 1.0f;
#elif defined(CASE_number_first)
  auto const logits = 2 * hidden;
#elif defined(CASE_negative)
  auto const logits = -hidden;
#elif defined(CASE_quotient)
  auto const logits = hidden / 2;
#elif defined(CASE_sum_with_column)
  auto const logits = nn::add(context, hidden, batch[&Sample::x]);
#else
  auto const logits = nn::gelu(context, hidden);
#endif
#if defined(CASE_gather_column)
  static_cast<void>(nn::all_gather(context, batch[&Sample::label]));
#elif defined(CASE_gather_numbers)
  static_cast<void>(nn::all_gather(context, context.input(batch[&Sample::label])));
#else
  static_cast<void>(nn::all_gather(context, x));
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
#elif defined(CASE_loss_without_labels)
  return nn::cross_entropy(context, logits);
#elif defined(CASE_loss_of_batch)
  return nn::cross_entropy(context, logits, batch);
#elif defined(CASE_loss_of_member)
  return nn::cross_entropy(context, logits, &Sample::label);
#elif defined(CASE_distance_without_target)
  return nn::mean_squared_error(context, logits);
#else
  return nn::cross_entropy(context, logits, batch[&Sample::label]);
#endif
}
