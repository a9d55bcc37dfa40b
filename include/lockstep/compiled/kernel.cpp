// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/attention/attention.ipp>
#include <lockstep/kernel/attention/cached_attention.ipp>
#include <lockstep/kernel/attention/keys_and_values.ipp>
#include <lockstep/kernel/convolution/convolution.hpp>
#include <lockstep/kernel/copy/convert.hpp>
#include <lockstep/kernel/elementwise/binary_operation.hpp>
#include <lockstep/kernel/elementwise/elementwise.hpp>
#include <lockstep/kernel/embedding/fused_embedding.ipp>
#include <lockstep/kernel/gemm/gemm.ipp>
#include <lockstep/kernel/linear/gated_linear.ipp>
#include <lockstep/kernel/linear/linear.ipp>
#include <lockstep/kernel/loss/cross_entropy.hpp>
#include <lockstep/kernel/normalization/batch_norm.ipp>
#include <lockstep/kernel/normalization/group_norm.ipp>
#include <lockstep/kernel/normalization/layer_norm.ipp>
#include <lockstep/kernel/normalization/rms_norm.ipp>
#include <lockstep/kernel/pooling/pooling.ipp>
#include <lockstep/kernel/pooling/spatial_pooling.ipp>
#include <lockstep/kernel/reduction/sum_of_squares.ipp>
#include <lockstep/kernel/sequence/token_slots.ipp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

template LOCKSTEP_CROSS_ENTROPY(float, std::int32_t const);
template LOCKSTEP_CROSS_ENTROPY(float, std::int64_t const);
template LOCKSTEP_CROSS_ENTROPY(double, std::int32_t const);
template LOCKSTEP_CROSS_ENTROPY(double, std::int64_t const);

LOCKSTEP_CONVOLUTION(template, float);
LOCKSTEP_CONVOLUTION(template, double);
LOCKSTEP_CONVERT(template, bfloat16);
LOCKSTEP_CONVERT(template, float16);

LOCKSTEP_BINARY_OPERATIONS(template, float);
LOCKSTEP_BINARY_OPERATIONS(template, double);
LOCKSTEP_ELEMENTWISE(template, Relu, float);
LOCKSTEP_ELEMENTWISE(template, Relu, double);
LOCKSTEP_ELEMENTWISE(template, Sigmoid, float);
LOCKSTEP_ELEMENTWISE(template, Sigmoid, double);
LOCKSTEP_ELEMENTWISE(template, Tanh, float);
LOCKSTEP_ELEMENTWISE(template, Tanh, double);
LOCKSTEP_ELEMENTWISE_WITH_SLOPE(template, Gelu, float);
LOCKSTEP_ELEMENTWISE_WITH_SLOPE(template, Gelu, double);
LOCKSTEP_ELEMENTWISE_WITH_SLOPE(template, Silu, float);
LOCKSTEP_ELEMENTWISE_WITH_SLOPE(template, Silu, double);

}}}  // namespace lockstep::kernel
