// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <span>

#include <lockstep/kernel/activation_rules.hpp>
#include <lockstep/kernel/attention/attention.hpp>
#include <lockstep/kernel/attention/relative_bias.hpp>
#include <lockstep/kernel/attention/rotary.hpp>
#include <lockstep/kernel/convolution/convolution.hpp>
#include <lockstep/kernel/convolution/image_input.hpp>
#include <lockstep/kernel/convolution/pad.hpp>
#include <lockstep/kernel/convolution/upsample.hpp>
#include <lockstep/kernel/copy/channels.hpp>
#include <lockstep/kernel/copy/convert.hpp>
#include <lockstep/kernel/copy/copy.hpp>
#include <lockstep/kernel/copy/permute.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/elementwise/binary_operation.hpp>
#include <lockstep/kernel/elementwise/channel_bias.hpp>
#include <lockstep/kernel/elementwise/channel_scale.hpp>
#include <lockstep/kernel/elementwise/elementwise.hpp>
#include <lockstep/kernel/elementwise/learned_scale.hpp>
#include <lockstep/kernel/embedding/fused_embedding.hpp>
#include <lockstep/kernel/gemm/gemm.hpp>
#include <lockstep/kernel/linear/gated_linear.hpp>
#include <lockstep/kernel/linear/linear.hpp>
#include <lockstep/kernel/loss/cross_entropy.hpp>
#include <lockstep/kernel/loss/ctc.hpp>
#include <lockstep/kernel/loss/elementwise_loss.hpp>
#include <lockstep/kernel/loss/loss_rules.hpp>
#include <lockstep/kernel/loss/soft_cross_entropy.hpp>
#include <lockstep/kernel/normalization/batch_norm.hpp>
#include <lockstep/kernel/normalization/group_norm.hpp>
#include <lockstep/kernel/normalization/l2_normalize.hpp>
#include <lockstep/kernel/normalization/layer_norm.hpp>
#include <lockstep/kernel/normalization/log_softmax.hpp>
#include <lockstep/kernel/normalization/rms_norm.hpp>
#include <lockstep/kernel/normalization/softmax.hpp>
#include <lockstep/kernel/optimizer/optimizer_step.hpp>
#include <lockstep/kernel/pooling/pooling.hpp>
#include <lockstep/kernel/pooling/spatial_pooling.hpp>
#include <lockstep/kernel/random/dropout.hpp>
#include <lockstep/kernel/random/sample_dropout.hpp>
#include <lockstep/kernel/random/standard_normal.hpp>
#include <lockstep/kernel/random/step_key.hpp>
#include <lockstep/kernel/recurrent/recurrent.hpp>
#include <lockstep/kernel/recurrent/recurrent_cells.hpp>
#include <lockstep/kernel/reduction/dot_by_row.hpp>
#include <lockstep/kernel/reduction/sum.hpp>
#include <lockstep/kernel/sequence/arange.hpp>
#include <lockstep/kernel/sequence/clear_padding.hpp>
#include <lockstep/kernel/sequence/sequence_operation.hpp>
#include <lockstep/kernel/sequence/strided_rows.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

// The functions that layers, losses and optimizers call in every space: one concept per kernel, room by room. A space's
// kernel satisfies its concept if each call compiles with arguments in float. The kernel's host header documents the
// functions. Only SumOfSquares and kernels that one space needs are not listed.

namespace detail {

/// Arguments of the calls below, named by their element type and rank.
template <class Space>
struct ContractArguments : KernelTypes<Space> {
  template <class Scalar>
  using Vector = typename KernelTypes<Space>::template Vector<Scalar>;
  template <class Scalar>
  using Matrix = typename KernelTypes<Space>::template Matrix<Scalar>;

  typename KernelTypes<Space>::Stream stream;
  Vector<float const> in;
  Vector<float> out;
  Matrix<float const> rows_in;
  Matrix<float> rows_out;
  Vector<double> sums;
  Vector<std::int32_t const> numbers_in;
  Vector<std::int32_t> numbers_out;
  Matrix<std::uint8_t const> bytes_in;
  float* memory;
  float const* factor;
  double* partial;
  double const* moments;
  std::span<double const> constants;
  Index n;
  Write write;
  Activation activation;
  DropoutMask mask;
  SequenceLayout<Space> layout;
  RowDropout<Space> dropout;
  Residual<float, Space> residual;
  ActivationSlope<float, Space> slope;
  ConvolutionShape shape;
  CrossEntropyOptions cross_entropy;
};

}  // namespace detail

/// Arguments with which the concepts below call the kernels of a space.
template <class Space>
using KernelArguments = detail::ContractArguments<Space> const&;

// ---- attention

/// Requires attention over sequences, forward and backward, and the sizes of their scratch memory.
template <class Space>
concept HasAttention = requires(KernelArguments<Space> a,
                                typename Attention<Space>::template Inputs<float> const& inputs,
                                typename Attention<Space>::template Gradients<float> const& gradients) {
  Attention<Space>::template forward_scratch<float>(a.stream, inputs);
  Attention<Space>::template scratch<float>(a.stream, inputs);
  Attention<Space>::template forward<float>(a.stream, inputs, a.rows_out, a.rows_out, a.out);
  Attention<Space>::template backward<float>(a.stream, inputs, a.rows_in, a.rows_out, a.rows_in, gradients, a.out);
};
/// Requires the bias of relative positions, forward and backward.
template <class Space>
concept HasRelativeBias = requires(KernelArguments<Space> a, RelativeBuckets const& buckets) {
  RelativeBias<Space>::template forward<float>(a.stream, buckets, a.n, a.rows_in, a.rows_out);
  RelativeBias<Space>::template backward<float>(a.stream, buckets, a.n, a.rows_in, a.rows_out, a.write);
};
/// Requires the table of rotary positions, and the rotation.
template <class Space>
concept HasRotary = requires(KernelArguments<Space> a, Rotation rotation) {
  Rotary<Space>::template fill<float>(a.stream, 1e4, a.n, a.rows_out);
  Rotary<Space>::template run<float>(a.stream, a.layout, a.rows_in, rotation, a.rows_out);
};

// ---- convolution

/// Requires convolution, and its gradients of data and weights.
template <class Space>
concept HasConvolution = requires(KernelArguments<Space> a, typename Convolution<Space>::template Plans<float>& plans,
                                  typename Convolution<Space>::Scratch& scratch) {
  Convolution<Space>::template forward<float>(a.stream, a.shape, a.in, a.in, a.in, a.out, plans, scratch);
  Convolution<Space>::template backward_data<float>(a.stream, a.shape, a.in, a.in, a.out, a.write, plans, scratch);
  Convolution<Space>::template backward_weight<float>(a.stream, a.shape, a.in, a.in, a.out, a.write, a.out, a.write,
                                                      plans, scratch);
};
/// Requires the normalization of bytes to numbers, and the size of its table.
template <class Space>
concept HasImageInput = requires(KernelArguments<Space> a) {
  ImageInput<Space>::table_elements(a.n);
  ImageInput<Space>::template normalize<float>(a.stream, a.bytes_in, a.constants, a.constants, a.rows_out, a.memory);
};
/// Requires the padding of images with their own values, forward and backward.
template <class Space>
concept HasPad = requires(KernelArguments<Space> a, PadShape const& shape) {
  Pad<Space>::template forward<float>(a.stream, shape, a.in, a.out);
  Pad<Space>::template backward<float>(a.stream, shape, a.in, a.out, a.write);
};
/// Requires the enlargement of images, nearest-neighbour and linear, forward and backward.
template <class Space>
concept HasUpsample = requires(KernelArguments<Space> a, UpsampleShape const& shape) {
  Upsample<Space>::template forward<float>(a.stream, shape, a.in, a.out);
  Upsample<Space>::template backward<float>(a.stream, shape, a.in, a.out, a.write);
  Upsample<Space>::template linear<float>(a.stream, shape, a.in, a.out);
  Upsample<Space>::template linear_backward<float>(a.stream, shape, a.in, a.out, a.write);
};

// ---- copy

/// Requires copies of a range of channels into wider rows and out of them, and the gradient of the latter.
template <class Space>
concept HasChannels = requires(KernelArguments<Space> a) {
  Channels<Space>::template put<float>(a.stream, a.rows_in, a.n, a.rows_out);
  Channels<Space>::template take<float>(a.stream, a.rows_in, a.n, a.rows_out, a.write);
  Channels<Space>::template take_backward<float>(a.stream, a.rows_in, a.n, a.rows_out, a.write);
};
/// Requires the permutation of a tensor's axes.
template <class Space>
concept HasPermute = requires(KernelArguments<Space> a, PermuteShape const& shape) {
  Permute<Space>::template run<float>(a.stream, shape, a.in, a.out, a.write);
};
/// Requires conversions between types: plain, added, and scaled by a number in the space's memory.
template <class Space>
concept HasConvert = requires(KernelArguments<Space> a) {
  Convert<Space>::template run<float, std::int32_t>(a.stream, a.numbers_in, a.out);
  Convert<Space>::template run<float, float>(a.stream, a.in, a.out, a.write);
  Convert<Space>::template run_scaled<float, float>(a.stream, a.in, a.factor, a.out, a.write);
};
/// Requires copies within the space's memory.
template <class Space>
concept HasCopy = requires(KernelArguments<Space> a) {
  Copy<Space>::template run<float>(a.stream, a.factor, a.memory, a.n);
};

// ---- elementwise

/// Requires activations by rule: forward with and without the slope, and backward.
template <class Space>
concept HasElementwise = requires(KernelArguments<Space> a) {
  Elementwise<Space>::template forward<Relu>(a.stream, a.in, a.out);
  Elementwise<Space>::template forward<Gelu>(a.stream, a.in, a.out, a.out);
  Elementwise<Space>::template backward<Relu>(a.stream, a.in, a.in, a.out, a.write);
};
/// Requires operations on two tensors by rule, forward and backward.
template <class Space>
concept HasBinaryOperation = requires(KernelArguments<Space> a) {
  BinaryOperation<Space>::template forward<Plus, float>(a.stream, a.in, a.in, a.out);
  BinaryOperation<Space>::template backward<FirstOperand, float>(a.stream, a.in, a.in, a.out, a.write);
};
/// Requires the addition of a bias to each row, its gradient, and the size of the partial sums.
template <class Space>
concept HasChannelBias = requires(KernelArguments<Space> a) {
  ChannelBias<Space>::template forward<float>(a.stream, a.in, a.rows_out);
  ChannelBias<Space>::partial_elements(a.n, a.n);
  ChannelBias<Space>::template backward<float>(a.stream, a.rows_in, a.out, a.write, a.memory);
};
/// Requires the scaling of each channel, the gradient of the factors, and the size of the partial sums.
template <class Space>
concept HasChannelScale = requires(KernelArguments<Space> a) {
  ChannelScale<Space>::template run<float>(a.stream, a.in, a.rows_in, a.rows_out, a.write);
  ChannelScale<Space>::partial_elements(a.n, a.n);
  ChannelScale<Space>::template factors_backward<float>(a.stream, a.rows_in, a.rows_in, a.out, a.write, a.memory);
};
/// Requires the scaling by one learned number, its gradient, and the number of partial sums.
template <class Space>
concept HasLearnedScale = requires(KernelArguments<Space> a, LearnedFactor factor) {
  LearnedScale<Space>::template run<float>(a.stream, factor, a.factor, a.in, a.out, a.write);
  LearnedScale<Space>::chunks(a.n);
  LearnedScale<Space>::template factor_backward<float>(a.stream, factor, a.factor, a.in, a.in, a.memory, a.write,
                                                       a.partial);
};

// ---- embedding

/// Requires the assembly of embeddings into sequences, their gradients, and the plan of the tables' gradients.
template <class Space>
concept HasFusedEmbedding = requires(KernelArguments<Space> a, Assembly<Space> const& assembly,
                                     typename FusedEmbedding<Space>::template Inputs<float> const& inputs,
                                     typename FusedEmbedding<Space>::template Gradients<float> const& gradients,
                                     typename FusedEmbedding<Space>::Plan& plan) {
  FusedEmbedding<Space>::template bounds<std::int32_t>(a.stream, assembly, a.numbers_out);
  FusedEmbedding<Space>::template forward<float>(a.stream, inputs, a.rows_out);
  FusedEmbedding<Space>::template scratch<float>(inputs, a.n);
  FusedEmbedding<Space>::template backward<float>(a.stream, inputs, a.rows_in, a.rows_out, gradients, a.memory);
  FusedEmbedding<Space>::plan_elements(a.n);
  FusedEmbedding<Space>::partial_rows(a.n);
  FusedEmbedding<Space>::template plan<float>(a.stream, inputs, 0, 0, a.numbers_out, plan);
  FusedEmbedding<Space>::template backward_table<float>(a.stream, plan, a.rows_in, a.rows_out, a.rows_out, a.write);
};

// ---- gemm

/// Requires c = alpha a b + beta c.
template <class Space>
concept HasGemm = requires(KernelArguments<Space> a) {
  Gemm<Space>::multiply(a.stream, 1.0F, a.rows_in, Transpose::no, a.rows_in, Transpose::yes, 0.0F, a.rows_out);
};

// ---- linear

/// Requires the linear layer: forward alone, with an activation and dropout, and with gelu; backward, also through a
/// recomputed gelu; and the sizes of their memory.
template <class Space>
concept HasLinear = requires(KernelArguments<Space> a) {
  Linear<Space>::template forward<float>(a.stream, a.rows_in, a.rows_in, a.in, a.rows_out);
  Linear<Space>::template forward<float>(a.stream, a.rows_in, a.rows_in, a.in, a.activation, a.dropout, a.rows_out,
                                         a.rows_out);
  Linear<Space>::template forward_gelu<float>(a.stream, a.rows_in, a.rows_in, a.in, a.rows_out, a.rows_out);
  Linear<Space>::rows_per_pass(a.stream, a.n);
  Linear<Space>::partial_elements(a.stream, a.n, a.n, a.n);
  Linear<Space>::template backward<float>(a.stream, a.rows_in, a.rows_in, a.rows_in, a.slope, a.rows_out, a.write,
                                          a.rows_out, a.write, a.out, a.write, a.memory);
  Linear<Space>::recomputed_elements(a.stream, a.n, a.n);
  Linear<Space>::template backward_through_gelu<float>(a.stream, a.rows_in, a.rows_out, a.rows_in, a.rows_out, a.write,
                                                       a.out, a.write, a.memory, a.memory);
};
/// Requires the linear layer whose result is multiplied by an activated gate.
template <class Space>
concept HasGatedLinear = requires(KernelArguments<Space> a) {
  GatedLinear<Space>::template forward<float>(a.stream, a.rows_in, a.rows_in, a.in, a.rows_in, a.rows_out, a.rows_out);
  GatedLinear<Space>::template backward<float>(a.stream, a.in, a.out, a.out);
};

// ---- loss

/// Requires the cross entropy of labels, with its gradient.
template <class Space>
concept HasCrossEntropy = requires(KernelArguments<Space> a) {
  CrossEntropy<Space>::forward_backward(a.stream, a.layout, a.cross_entropy, a.rows_in, a.numbers_in, a.sums, a.sums,
                                        a.rows_out, a.write, a.in);
};
/// Requires the cross entropy of a distribution over classes, with its gradient.
template <class Space>
concept HasSoftCrossEntropy = requires(KernelArguments<Space> a) {
  SoftCrossEntropy<Space>::forward_backward(a.stream, a.layout, a.cross_entropy, a.rows_in, a.in, a.sums, a.sums,
                                            a.rows_out, a.write, a.in);
};
/// Requires losses by rule, with their gradient.
template <class Space>
concept HasElementwiseLoss = requires(KernelArguments<Space> a) {
  ElementwiseLoss<Space>::forward_backward(a.stream, a.layout, SquaredError{}, 1.0F, a.rows_in, a.rows_in, a.sums,
                                           a.sums, a.rows_out, a.write, a.in);
};
/// Requires connectionist temporal classification, with its gradient and the size of its memory.
template <class Space>
concept HasCtc = requires(KernelArguments<Space> a, CtcOptions const& options) {
  Ctc<Space>::memory_elements(a.n, a.n, a.n, a.n);
  Ctc<Space>::forward_backward(a.stream, a.layout, a.layout, options, a.rows_in, a.numbers_in, a.sums, a.sums,
                               a.rows_out, a.write, a.out);
};

// ---- normalization

/// Requires the statistics of a batch, within a replica and over several, normalization by them, and the gradients.
template <class Space>
concept HasBatchNorm = requires(KernelArguments<Space> a, typename BatchNorm<Space>::template Running<float> running,
                                typename BatchNorm<Space>::template Statistics<float> of) {
  BatchNorm<Space>::partial_elements(a.n, a.n);
  BatchNorm<Space>::moment_elements(a.n);
  BatchNorm<Space>::template measure<float>(a.stream, a.rows_in, a.in, 1e-5, 0.1, running, of, a.memory, a.layout);
  BatchNorm<Space>::template moments<float>(a.stream, a.rows_in, a.memory, a.partial, a.layout);
  BatchNorm<Space>::template measure_merged<float>(a.stream, a.n, a.moments, a.in, 1e-5, 0.1, running, of);
  BatchNorm<Space>::template use_running_averages<float>(a.stream, running, a.in, 1e-5, of);
  BatchNorm<Space>::template forward<float>(a.stream, a.rows_in, of, a.in, a.activation, a.rows_out, a.layout);
  BatchNorm<Space>::template backward<float>(a.stream, a.rows_in, a.rows_in, of, a.in, a.activation, a.rows_out,
                                             a.write, a.out, a.write, a.out, a.write, a.memory, a.layout);
  BatchNorm<Space>::template sums<float>(a.stream, a.rows_in, a.rows_in, of, a.in, a.activation, a.out, a.write, a.out,
                                         a.write, a.memory, a.memory, a.layout);
  BatchNorm<Space>::template means<float>(a.stream, a.n, a.n, a.factor, a.moments, a.memory);
  BatchNorm<Space>::template input_gradient<float>(a.stream, a.rows_in, a.rows_in, of, a.in, a.activation, a.factor,
                                                   a.rows_out, a.write, a.layout);
};
/// Requires normalization by the statistics of groups of channels, and the gradients.
template <class Space>
concept HasGroupNorm = requires(KernelArguments<Space> a, GroupNormShape const& shape,
                                typename GroupNorm<Space>::template Statistics<float> of) {
  GroupNorm<Space>::partial_elements(shape);
  GroupNorm<Space>::template forward<float>(a.stream, shape, a.factor, 1e-5, of, a.factor, a.factor, a.activation,
                                            a.memory, a.memory);
  GroupNorm<Space>::template backward<float>(a.stream, shape, a.factor, a.factor, of, a.factor, a.factor, a.activation,
                                             a.memory, a.write, a.memory, a.write, a.memory, a.write, a.memory);
};
/// Requires rows of length 1, forward and backward.
template <class Space>
concept HasL2Normalize = requires(KernelArguments<Space> a) {
  L2Normalize<Space>::template forward<float>(a.stream, a.rows_in, 1e-12F, a.out, a.rows_out);
  L2Normalize<Space>::template backward<float>(a.stream, a.rows_in, a.rows_in, 1e-12F, a.in, a.rows_out, a.write);
};
/// Requires layer normalization of a sum with a residual, its gradients, and the size of the partial sums.
template <class Space>
concept HasLayerNorm = requires(KernelArguments<Space> a) {
  LayerNorm<Space>::template forward<float>(a.stream, a.rows_in, a.residual, a.in, a.in, 1e-5F, a.rows_out, a.rows_out,
                                            a.rows_out);
  LayerNorm<Space>::partial_elements(a.n, a.n);
  LayerNorm<Space>::template backward<float>(a.stream, a.rows_in, a.rows_in, a.rows_in, a.residual, a.in, a.rows_out,
                                             a.write, a.rows_out, a.write, a.out, a.write, a.out, a.write, a.memory,
                                             a.out, a.write);
  { LayerNorm<Space>::sums_dresidual } -> std::convertible_to<bool>;
};
/// Requires normalization by the root mean square, its gradients, and the size of the partial sums.
template <class Space>
concept HasRMSNorm = requires(KernelArguments<Space> a) {
  RMSNorm<Space>::template forward<float>(a.stream, a.rows_in, a.residual, a.in, 1e-5F, a.rows_out, a.out, a.rows_out);
  RMSNorm<Space>::partial_elements(a.n, a.n);
  RMSNorm<Space>::template backward<float>(a.stream, a.rows_in, a.rows_in, a.in, a.rows_in, a.dropout, a.in, a.rows_out,
                                           a.write, a.rows_out, a.write, a.out, a.write, a.memory);
};
/// Requires the softmax of each row, forward and backward.
template <class Space>
concept HasSoftmax = requires(KernelArguments<Space> a) {
  Softmax<Space>::template forward<float>(a.stream, a.rows_in, a.rows_out);
  Softmax<Space>::template backward<float>(a.stream, a.rows_in, a.rows_in, a.rows_out, a.write);
};
/// Requires the logarithm of the softmax of each row, forward and backward.
template <class Space>
concept HasLogSoftmax = requires(KernelArguments<Space> a) {
  LogSoftmax<Space>::template forward<float>(a.stream, a.rows_in, a.rows_out);
  LogSoftmax<Space>::template backward<float>(a.stream, a.rows_in, a.rows_in, a.rows_out, a.write);
};

// ---- pooling

/// Requires the mean, sum or maximum, and the first or last token, of each sequence, and their gradients.
template <class Space>
concept HasPooling = requires(KernelArguments<Space> a, TensorView<std::int32_t, 2, Space> const& tokens) {
  Pooling<Space>::template reduce<float>(a.stream, a.layout, TokenReduction::mean, a.rows_in, a.rows_out);
  Pooling<Space>::template reduce_backward<float>(a.stream, a.layout, TokenReduction::mean, a.rows_in, a.rows_out,
                                                  a.write);
  Pooling<Space>::template token<float>(a.stream, a.layout, PooledToken::last, a.rows_in, a.rows_out);
  Pooling<Space>::template token_backward<float>(a.stream, a.layout, PooledToken::last, a.rows_in, a.rows_out, a.write);
  Pooling<Space>::template max<float>(a.stream, a.layout, a.rows_in, a.rows_out, tokens);
  Pooling<Space>::template max_backward<float>(a.stream, a.layout, a.rows_in, tokens, a.rows_out, a.write);
};
/// Requires the largest and the mean of each window of an image, and their gradients.
template <class Space>
concept HasSpatialPooling = requires(KernelArguments<Space> a) {
  SpatialPooling<Space>::template max<float>(a.stream, a.shape, a.in, a.out, a.numbers_out);
  SpatialPooling<Space>::template max_backward<float>(a.stream, a.shape, a.in, a.numbers_in, a.out, a.write);
  SpatialPooling<Space>::template average<float>(a.stream, a.shape, a.in, a.out, PoolingDivisor::elements);
  SpatialPooling<Space>::template average_backward<float>(a.stream, a.shape, a.in, a.out, a.write,
                                                          PoolingDivisor::elements);
};

// ---- random

/// Requires dropout of elements, dropout of samples, and normal numbers.
template <class Space>
concept HasRandom = requires(KernelArguments<Space> a) {
  Dropout<Space>::template apply<float>(a.stream, a.mask, a.layout, a.rows_in, a.rows_out, a.write);
  SampleDropout<Space>::template apply<float>(a.stream, a.mask, a.layout, a.rows_in, a.rows_out, a.write);
  StandardNormal<Space>::template fill<float>(a.stream, a.mask, a.layout, a.rows_out);
};
/// Requires the random key of a micro-batch, and the masks made from it.
template <class Space>
concept HasStepKey = requires(KernelArguments<Space> a, StepKey<Space>& key) {
  key.set(a.stream, std::uint64_t{});
  { key.mask(std::uint64_t{}, std::uint32_t{}) } -> std::same_as<DropoutMask>;
};

// ---- recurrent

/// Requires a step of a recurrent layer, forward and backward, and the states before all steps.
template <class Space>
concept HasRecurrent = requires(KernelArguments<Space> a, RecurrentPass<float, Space> const& pass) {
  Recurrent<Space>::template forward_step<LstmCell>(a.stream, a.n, pass, a.rows_in, a.in, a.rows_out, a.rows_out);
  Recurrent<Space>::template backward_step<LstmCell>(a.stream, a.n, pass, a.rows_in, a.rows_in, a.rows_out, a.rows_out,
                                                     a.rows_out, a.rows_out);
  Recurrent<Space>::states_before(a.stream, pass, a.rows_in, a.rows_out);
};

// ---- reduction

/// Requires the dot product of each pair of rows, forward and backward.
template <class Space>
concept HasDotByRow = requires(KernelArguments<Space> a) {
  DotByRow<Space>::template forward<float>(a.stream, a.rows_in, a.rows_in, a.out);
  DotByRow<Space>::template backward<float>(a.stream, a.in, a.rows_in, a.rows_out, a.write);
};
/// Requires the sum of doubles, in order.
template <class Space>
concept HasSum = requires(KernelArguments<Space> a, TensorView<double const, 1, Space> x) {
  Sum<Space>::run(a.stream, x, a.partial);
  Sum<Space>::run_both(a.stream, x, x, a.partial);
};

// ---- sequence

/// Requires consecutive numbers.
template <class Space>
concept HasArange = requires(KernelArguments<Space> a) {
  Arange<Space>::fill(a.stream, std::int32_t{}, a.numbers_out);
};
/// Requires zeros in padding, and the number of tokens in each window.
template <class Space>
concept HasClearPadding = requires(KernelArguments<Space> a) {
  ClearPadding<Space>::template run<float>(a.stream, a.layout, a.rows_in, a.rows_out, a.write);
  ClearPadding<Space>::window_counts(a.stream, a.numbers_in, a.n, a.n, a.n, a.n, a.numbers_out);
};
/// Requires operations of each token with its sequence's row by rule, forward and backward.
template <class Space>
concept HasSequenceOperation = requires(KernelArguments<Space> a) {
  SequenceOperation<Space>::template run<Plus, float>(a.stream, a.layout, a.rows_in, a.rows_in, a.rows_out, a.write);
  SequenceOperation<Space>::template backward<FirstOperand, float>(a.stream, a.layout, a.rows_in, a.rows_in, a.rows_out,
                                                                   a.write);
};
/// Requires every n-th row, forward and backward.
template <class Space>
concept HasStridedRows = requires(KernelArguments<Space> a) {
  StridedRows<Space>::template forward<float>(a.stream, a.rows_in, a.n, a.n, a.rows_out);
  StridedRows<Space>::template backward<float>(a.stream, a.rows_in, a.n, a.n, a.rows_out, a.write);
};

/// Returns true if a space offers all kernels of the contract; otherwise a static_assert names each that it lacks.
template <class Space>
consteval bool has_all_kernels() {
  static_assert(HasAttention<Space>,
                "Lockstep: this space's kernel::Attention differs from kernel/contract/contract.hpp");
  static_assert(HasRelativeBias<Space>,
                "Lockstep: this space's kernel::RelativeBias differs from kernel/contract/contract.hpp");
  static_assert(HasRotary<Space>, "Lockstep: this space's kernel::Rotary differs from kernel/contract/contract.hpp");
  static_assert(HasConvolution<Space>,
                "Lockstep: this space's kernel::Convolution differs from kernel/contract/contract.hpp");
  static_assert(HasImageInput<Space>,
                "Lockstep: this space's kernel::ImageInput differs from kernel/contract/contract.hpp");
  static_assert(HasPad<Space>, "Lockstep: this space's kernel::Pad differs from kernel/contract/contract.hpp");
  static_assert(HasUpsample<Space>,
                "Lockstep: this space's kernel::Upsample differs from kernel/contract/contract.hpp");
  static_assert(HasChannels<Space>,
                "Lockstep: this space's kernel::Channels differs from kernel/contract/contract.hpp");
  static_assert(HasPermute<Space>, "Lockstep: this space's kernel::Permute differs from kernel/contract/contract.hpp");
  static_assert(HasConvert<Space>, "Lockstep: this space's kernel::Convert differs from kernel/contract/contract.hpp");
  static_assert(HasCopy<Space>, "Lockstep: this space's kernel::Copy differs from kernel/contract/contract.hpp");
  static_assert(HasElementwise<Space>,
                "Lockstep: this space's kernel::Elementwise differs from kernel/contract/contract.hpp");
  static_assert(HasBinaryOperation<Space>,
                "Lockstep: this space's kernel::BinaryOperation differs from kernel/contract/contract.hpp");
  static_assert(HasChannelBias<Space>,
                "Lockstep: this space's kernel::ChannelBias differs from kernel/contract/contract.hpp");
  static_assert(HasChannelScale<Space>,
                "Lockstep: this space's kernel::ChannelScale differs from kernel/contract/contract.hpp");
  static_assert(HasLearnedScale<Space>,
                "Lockstep: this space's kernel::LearnedScale differs from kernel/contract/contract.hpp");
  static_assert(HasFusedEmbedding<Space>,
                "Lockstep: this space's kernel::FusedEmbedding differs from kernel/contract/contract.hpp");
  static_assert(HasGemm<Space>, "Lockstep: this space's kernel::Gemm differs from kernel/contract/contract.hpp");
  static_assert(HasLinear<Space>, "Lockstep: this space's kernel::Linear differs from kernel/contract/contract.hpp");
  static_assert(HasGatedLinear<Space>,
                "Lockstep: this space's kernel::GatedLinear differs from kernel/contract/contract.hpp");
  static_assert(HasCrossEntropy<Space>,
                "Lockstep: this space's kernel::CrossEntropy differs from kernel/contract/contract.hpp");
  static_assert(HasSoftCrossEntropy<Space>,
                "Lockstep: this space's kernel::SoftCrossEntropy differs from kernel/contract/contract.hpp");
  static_assert(HasElementwiseLoss<Space>,
                "Lockstep: this space's kernel::ElementwiseLoss differs from kernel/contract/contract.hpp");
  static_assert(HasCtc<Space>, "Lockstep: this space's kernel::Ctc differs from kernel/contract/contract.hpp");
  static_assert(HasBatchNorm<Space>,
                "Lockstep: this space's kernel::BatchNorm differs from kernel/contract/contract.hpp");
  static_assert(HasGroupNorm<Space>,
                "Lockstep: this space's kernel::GroupNorm differs from kernel/contract/contract.hpp");
  static_assert(HasL2Normalize<Space>,
                "Lockstep: this space's kernel::L2Normalize differs from kernel/contract/contract.hpp");
  static_assert(HasLayerNorm<Space>,
                "Lockstep: this space's kernel::LayerNorm differs from kernel/contract/contract.hpp");
  static_assert(HasRMSNorm<Space>, "Lockstep: this space's kernel::RMSNorm differs from kernel/contract/contract.hpp");
  static_assert(HasSoftmax<Space>, "Lockstep: this space's kernel::Softmax differs from kernel/contract/contract.hpp");
  static_assert(HasLogSoftmax<Space>,
                "Lockstep: this space's kernel::LogSoftmax differs from kernel/contract/contract.hpp");
  static_assert(HasPooling<Space>, "Lockstep: this space's kernel::Pooling differs from kernel/contract/contract.hpp");
  static_assert(HasSpatialPooling<Space>,
                "Lockstep: this space's kernel::SpatialPooling differs from kernel/contract/contract.hpp");
  static_assert(HasRandom<Space>,
                "Lockstep: this space's kernel::Dropout, SampleDropout or StandardNormal differs from "
                "kernel/contract/contract.hpp");
  static_assert(HasStepKey<Space>, "Lockstep: this space's kernel::StepKey differs from kernel/contract/contract.hpp");
  static_assert(HasRecurrent<Space>,
                "Lockstep: this space's kernel::Recurrent differs from kernel/contract/contract.hpp");
  static_assert(HasDotByRow<Space>,
                "Lockstep: this space's kernel::DotByRow differs from kernel/contract/contract.hpp");
  static_assert(HasSum<Space>, "Lockstep: this space's kernel::Sum differs from kernel/contract/contract.hpp");
  static_assert(HasArange<Space>, "Lockstep: this space's kernel::Arange differs from kernel/contract/contract.hpp");
  static_assert(HasClearPadding<Space>,
                "Lockstep: this space's kernel::ClearPadding differs from kernel/contract/contract.hpp");
  static_assert(HasSequenceOperation<Space>,
                "Lockstep: this space's kernel::SequenceOperation differs from kernel/contract/contract.hpp");
  static_assert(HasStridedRows<Space>,
                "Lockstep: this space's kernel::StridedRows differs from kernel/contract/contract.hpp");
  return true;
}

}}}  // namespace lockstep::kernel
