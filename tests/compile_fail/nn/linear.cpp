// SPDX-License-Identifier: Apache-2.0
// CASE tensor: Lockstep: Linear takes a Variable [rows, channels] or a Sequence. Of a batch's array column that is
// CASE numbers: Lockstep: Linear takes a Variable [rows, channels] or a Sequence
// CASE layer_norm: Lockstep: a layer takes a Variable, and this is a tensor or a column of a batch
// CASE rms_norm: Lockstep: a layer takes a Variable, and this is a tensor or a column of a batch
// CASE batch_norm: Lockstep: a layer takes a Variable, and this is a tensor or a column of a batch
// CASE convolution: Lockstep: a layer takes a Variable, and this is a tensor or a column of a batch
#include <lockstep/nn/batch_norm.hpp>
#include <lockstep/nn/convolution.hpp>
#include <lockstep/nn/layer_norm.hpp>
#include <lockstep/nn/linear.hpp>
#include <lockstep/nn/rms_norm.hpp>

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
