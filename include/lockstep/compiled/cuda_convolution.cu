// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/float16.hpp>
#include <lockstep/kernel/convolution/convolution.icuh>
#if defined(LOCKSTEP_CUDNN)
#include <lockstep/kernel/convolution/detail/convolution_cudnn.icuh>
#endif
#include <lockstep/kernel/convolution/image_input.icuh>
#include <lockstep/kernel/convolution/pad.icuh>
#include <lockstep/kernel/convolution/upsample.icuh>
#include <lockstep/kernel/normalization/batch_norm.icuh>
#include <lockstep/kernel/pooling/spatial_pooling.icuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

LOCKSTEP_CUDA_CONVOLUTION(float);
LOCKSTEP_CUDA_CONVOLUTION(bfloat16);
LOCKSTEP_CUDA_CONVOLUTION(float16);
LOCKSTEP_CUDA_BATCH_NORM(float);
LOCKSTEP_CUDA_BATCH_NORM(bfloat16);
LOCKSTEP_CUDA_BATCH_NORM(float16);
LOCKSTEP_CUDA_IMAGE_INPUT(float);
LOCKSTEP_CUDA_IMAGE_INPUT(bfloat16);
LOCKSTEP_CUDA_IMAGE_INPUT(float16);
LOCKSTEP_CUDA_PAD(float);
LOCKSTEP_CUDA_PAD(bfloat16);
LOCKSTEP_CUDA_PAD(float16);
LOCKSTEP_CUDA_UPSAMPLE(float);
LOCKSTEP_CUDA_UPSAMPLE(bfloat16);
LOCKSTEP_CUDA_UPSAMPLE(float16);
LOCKSTEP_CUDA_SPATIAL_POOLING(float);
LOCKSTEP_CUDA_SPATIAL_POOLING(bfloat16);
LOCKSTEP_CUDA_SPATIAL_POOLING(float16);

}}}  // namespace lockstep::kernel
