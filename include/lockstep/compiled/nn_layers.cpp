// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/elementwise/gelu.hpp>
#include <lockstep/nn/elementwise/relu.hpp>
#include <lockstep/nn/elementwise/sigmoid.hpp>
#include <lockstep/nn/elementwise/silu.hpp>
#include <lockstep/nn/elementwise/tanh.hpp>
#include <lockstep/nn/linear/linear.ipp>
#include <lockstep/nn/loss/cross_entropy.hpp>
#include <lockstep/nn/normalization/layer_norm.ipp>
#include <lockstep/nn/normalization/rms_norm.ipp>
#include <lockstep/nn/pooling/pooling.ipp>
#include <lockstep/nn/transformer/feed_forward.ipp>
#include <lockstep/nn/transformer/gated_feed_forward.ipp>
#include <lockstep/nn/transformer/transformer_decoder.ipp>
#include <lockstep/nn/transformer/transformer_encoder.ipp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

#define LOCKSTEP_LAYERS(Number)                    \
  LOCKSTEP_LINEAR(Number, HostSpace);              \
  LOCKSTEP_LAYER_NORM(Number, HostSpace);          \
  LOCKSTEP_RMS_NORM(Number, HostSpace);            \
  LOCKSTEP_FEED_FORWARD(Number, HostSpace);        \
  LOCKSTEP_GATED_FEED_FORWARD(Number, HostSpace);  \
  LOCKSTEP_TRANSFORMER_DECODER(Number, HostSpace); \
  LOCKSTEP_TRANSFORMER_ENCODER(Number, HostSpace); \
  LOCKSTEP_REDUCING_POOLS(Number, HostSpace)
LOCKSTEP_LAYERS(float);
LOCKSTEP_LAYERS(double);
LOCKSTEP_LAYERS(bfloat16);
LOCKSTEP_LAYERS(float16);
LOCKSTEP_LINEAR_EXACT(float, HostSpace);
LOCKSTEP_LINEAR_EXACT(double, HostSpace);
LOCKSTEP_LAYER_NORM_EXACT(float, HostSpace);
LOCKSTEP_LAYER_NORM_EXACT(double, HostSpace);
LOCKSTEP_FEED_FORWARD_EXACT(float, HostSpace);
LOCKSTEP_FEED_FORWARD_EXACT(double, HostSpace);

template LOCKSTEP_ACTIVATION(gelu, float, HostSpace);
template LOCKSTEP_ACTIVATION(relu, float, HostSpace);
template LOCKSTEP_ACTIVATION(silu, float, HostSpace);
template LOCKSTEP_ACTIVATION(sigmoid, float, HostSpace);
template LOCKSTEP_ACTIVATION(tanh, float, HostSpace);
namespace detail {
template LOCKSTEP_CROSS_ENTROPY_OF(float, std::int32_t const, HostSpace);
template LOCKSTEP_CROSS_ENTROPY_OF(float, std::int64_t const, HostSpace);
}  // namespace detail

}}}  // namespace lockstep::nn
