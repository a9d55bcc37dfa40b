// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/linear/linear.ipp>
#include <lockstep/nn/normalization/layer_norm.ipp>
#include <lockstep/nn/normalization/rms_norm.ipp>
#include <lockstep/nn/pooling/pooling.hpp>
#include <lockstep/nn/transformer/feed_forward.ipp>
#include <lockstep/nn/transformer/gated_feed_forward.ipp>
#include <lockstep/nn/transformer/transformer_decoder.ipp>
#include <lockstep/nn/transformer/transformer_encoder.ipp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

LOCKSTEP_MEAN_POOL(template, float);
LOCKSTEP_MEAN_POOL(template, double);
LOCKSTEP_MEAN_POOL(template, bfloat16);
LOCKSTEP_MEAN_POOL(template, float16);

}}}  // namespace lockstep::nn
