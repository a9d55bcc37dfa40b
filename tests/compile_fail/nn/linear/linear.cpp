// SPDX-License-Identifier: Apache-2.0
// CASE tensor: Lockstep: Linear takes a Variable [rows, channels] or a Sequence. For a batch's array column pass
// CASE numbers: Lockstep: Linear takes a Variable [rows, channels] or a Sequence
// CASE layer_norm: Lockstep: a layer takes a Variable, and this is a tensor or a column of a batch
// CASE rms_norm: Lockstep: a layer takes a Variable, and this is a tensor or a column of a batch
// CASE batch_norm: Lockstep: a layer takes a Variable, and this is a tensor or a column of a batch
// CASE convolution: Lockstep: a layer takes a Variable, and this is a tensor or a column of a batch
// CASE other_rank: Lockstep: a convolution takes rows, as many axes of space as it has itself, and channels
// CASE whole_batch: Lockstep: Linear got the whole batch. A model's forward takes a batch and returns its loss
// CASE frozen: Lockstep: the frozen block has no forward(context, inputs...) const for these inputs
// CASE recurrent: Lockstep: a layer over tokens takes a Sequence: nn::sequence_of makes one of a batch's column
// CASE attention: Lockstep: a layer over tokens takes a Sequence: nn::sequence_of makes one of a batch's column
// CASE embedding: Lockstep: an nn::Embedding is a table, which a layer looks up together with others
// CASE convolution_without_context: Lockstep: layers, activations and losses take the context first
// CASE norm_without_context: Lockstep: layers, activations and losses take the context first
// CASE attention_swapped: Lockstep: layers, activations and losses take the context first
// CASE frozen_swapped: Lockstep: layers, activations and losses take the context first
// CASE dropout: Lockstep: Dropout of a Variable takes the positions of the batch's samples
// CASE rule: Lockstep: a rule of parameters has captured more than two numbers
// CASE sum: Lockstep: activations are added by nn::add(context, x, y)
// CASE sequences: Lockstep: activations are added by nn::add(context, x, y)
// CASE difference: Lockstep: activations are subtracted by nn::subtract(context, x, y)
// CASE differences: Lockstep: activations are subtracted by nn::subtract(context, x, y)
// CASE product: Lockstep: activations are multiplied by nn::multiply(context, x, y)
// CASE products: Lockstep: activations are multiplied by nn::multiply(context, x, y)
#include <lockstep/nn/attention/attention.hpp>
#include <lockstep/nn/convolution/convolution.hpp>
#include <lockstep/nn/embedding/embedding.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/module/frozen.hpp>
#include <lockstep/nn/normalization/batch_norm.hpp>
#include <lockstep/nn/normalization/layer_norm.hpp>
#include <lockstep/nn/normalization/rms_norm.hpp>
#include <lockstep/nn/random/dropout.hpp>
#include <lockstep/nn/recurrent/recurrent.hpp>
#include <lockstep/optim/rate_rule.hpp>

using namespace lockstep;
using Context = nn::Context<float, HostSpace>;

Context::Variable<2> run(nn::Linear const& linear, Context& context, TensorView<float const, 2, HostSpace> values,
                         [[maybe_unused]] TensorView<float const, 1, HostSpace> numbers) {
#if defined(CASE_tensor)
  return linear.forward(context, values);
#elif defined(CASE_numbers)
  return linear.forward(context, context.input(numbers));
#else
  return linear.forward(context, context.input(values));
#endif
}

struct Batch {
  Index rows() const { return 0; }
  TensorView<Index const, 1, HostSpace> positions() const { return {}; }
};
struct Predicts {
  nn::Linear linear{2, 2};
  void visit(auto&& each) { each("linear", linear); }
};
auto mistakes(Context& context, [[maybe_unused]] Batch const& batch, Context::Variable<2> x,
              [[maybe_unused]] nn::Sequence<float, HostSpace> sequence) {
#if defined(CASE_other_rank)
  return nn::Conv1d(2, 2).forward(context, x);
#elif defined(CASE_whole_batch)
  return nn::Linear(2, 2).forward(context, batch);
#elif defined(CASE_frozen)
  return nn::Frozen(Predicts{}).forward(context, x);
#elif defined(CASE_recurrent)
  return nn::GRU(2, 2).forward(context, x);
#elif defined(CASE_attention)
  return nn::MultiHeadAttention({.width = 2, .heads = 1}).forward(context, x);
#elif defined(CASE_embedding)
  return nn::Embedding(2, 2).forward(context, x);
#elif defined(CASE_convolution_without_context)
  return nn::Conv1d(2, 2).forward(x);
#elif defined(CASE_norm_without_context)
  return nn::LayerNorm(2).forward(sequence);
#elif defined(CASE_attention_swapped)
  return nn::MultiHeadAttention({.width = 2, .heads = 1}).forward(sequence, context);
#elif defined(CASE_frozen_swapped)
  return nn::Frozen(nn::Linear(2, 2)).forward(x, context);
#elif defined(CASE_dropout)
  return nn::Dropout(0.1).forward(context, x);
#elif defined(CASE_rule)
  std::array<double, 3> const factors{static_cast<double>(x.extent(0))};
  return optim::RateRule([factors](std::string_view, std::span<Index const>) { return factors[0]; });
#elif defined(CASE_sum)
  return x + x;
#elif defined(CASE_sequences)
  return sequence + sequence;
#elif defined(CASE_difference)
  return x - x;
#elif defined(CASE_differences)
  return sequence - sequence;
#elif defined(CASE_product)
  return x * x;
#elif defined(CASE_products)
  return sequence * sequence;
#else
  return nn::Frozen(nn::Linear(2, 2)).forward(context, x);
#endif
}

#if defined(CASE_layer_norm)
using Layer = nn::LayerNorm;
#elif defined(CASE_rms_norm)
using Layer = nn::RMSNorm;
#elif defined(CASE_convolution)
using Layer = nn::Conv1d;
#else
using Layer = nn::BatchNorm;
#endif

struct Column {
  TensorView<float const, 3, HostSpace> values;
};
auto normalize(Layer const& layer, Context& context, Column const& column) {
#if defined(CASE_layer_norm) || defined(CASE_rms_norm)
  return layer.forward(context, column.values);
#elif defined(CASE_batch_norm) || defined(CASE_convolution)
  return layer.forward(context, column);
#else
  return layer.forward(context, context.input(column.values));
#endif
}
