// SPDX-License-Identifier: Apache-2.0
#define LOCKSTEP_INLINE inline  // lockstep::compiled has the functions that are no templates
#include <lockstep/cuda.cuh>
#include <lockstep/nn/embedding/fused_embedding.ipp>
#include <lockstep/nn/linear/linear.ipp>
#include <lockstep/nn/normalization/layer_norm.ipp>
#include <lockstep/nn/normalization/rms_norm.ipp>
#include <lockstep/nn/pooling/pooling.ipp>
#include <lockstep/nn/transformer/feed_forward.ipp>
#include <lockstep/nn/transformer/gated_feed_forward.ipp>
#include <lockstep/nn/transformer/transformer_decoder.ipp>
#include <lockstep/nn/transformer/transformer_encoder.ipp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

#define LOCKSTEP_LAYERS(Number)                    \
  LOCKSTEP_LINEAR(Number, CudaSpace);              \
  LOCKSTEP_LAYER_NORM(Number, CudaSpace);          \
  LOCKSTEP_RMS_NORM(Number, CudaSpace);            \
  LOCKSTEP_FEED_FORWARD(Number, CudaSpace);        \
  LOCKSTEP_GATED_FEED_FORWARD(Number, CudaSpace);  \
  LOCKSTEP_TRANSFORMER_DECODER(Number, CudaSpace); \
  LOCKSTEP_TRANSFORMER_ENCODER(Number, CudaSpace); \
  LOCKSTEP_REDUCING_POOLS(Number, CudaSpace)
LOCKSTEP_LAYERS(float);
LOCKSTEP_LAYERS(bfloat16);
LOCKSTEP_LAYERS(float16);
LOCKSTEP_LINEAR_EXACT(float, CudaSpace);
LOCKSTEP_LAYER_NORM_EXACT(float, CudaSpace);
LOCKSTEP_FEED_FORWARD_EXACT(float, CudaSpace);
LOCKSTEP_FUSED_EMBEDDING(float, CudaSpace);
LOCKSTEP_FUSED_EMBEDDING(bfloat16, CudaSpace);
LOCKSTEP_FUSED_EMBEDDING(float16, CudaSpace);

}}}  // namespace lockstep::nn
