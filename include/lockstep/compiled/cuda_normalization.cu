// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/float16.hpp>
#include <lockstep/kernel/normalization/group_norm.icuh>
#include <lockstep/kernel/normalization/l2_normalize.icuh>
#include <lockstep/kernel/normalization/layer_norm.icuh>
#include <lockstep/kernel/normalization/log_softmax.icuh>
#include <lockstep/kernel/normalization/rms_norm.icuh>
#include <lockstep/kernel/normalization/softmax.icuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

LOCKSTEP_CUDA_LAYER_NORM(float);
LOCKSTEP_CUDA_LAYER_NORM(bfloat16);
LOCKSTEP_CUDA_LAYER_NORM(float16);
LOCKSTEP_CUDA_RMS_NORM(float);
LOCKSTEP_CUDA_RMS_NORM(bfloat16);
LOCKSTEP_CUDA_RMS_NORM(float16);
LOCKSTEP_CUDA_GROUP_NORM(float);
LOCKSTEP_CUDA_GROUP_NORM(bfloat16);
LOCKSTEP_CUDA_GROUP_NORM(float16);
LOCKSTEP_CUDA_L2_NORMALIZE(float);
LOCKSTEP_CUDA_L2_NORMALIZE(bfloat16);
LOCKSTEP_CUDA_L2_NORMALIZE(float16);
LOCKSTEP_CUDA_SOFTMAX(float);
LOCKSTEP_CUDA_SOFTMAX(bfloat16);
LOCKSTEP_CUDA_SOFTMAX(float16);
LOCKSTEP_CUDA_LOG_SOFTMAX(float);
LOCKSTEP_CUDA_LOG_SOFTMAX(bfloat16);
LOCKSTEP_CUDA_LOG_SOFTMAX(float16);

}}}  // namespace lockstep::kernel
