// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/float16.hpp>
#include <lockstep/kernel/elementwise/channel_bias.icuh>
#include <lockstep/kernel/gemm/gemm.icuh>
#include <lockstep/kernel/linear/gated_linear.icuh>
#include <lockstep/kernel/linear/linear.icuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

LOCKSTEP_CUDA_GEMM(float, float);
LOCKSTEP_CUDA_GEMM(bfloat16, bfloat16);
LOCKSTEP_CUDA_GEMM(bfloat16, float);
LOCKSTEP_CUDA_GEMM(float16, float16);
LOCKSTEP_CUDA_GEMM(float16, float);
LOCKSTEP_CUDA_LINEAR(float);
LOCKSTEP_CUDA_LINEAR(bfloat16);
LOCKSTEP_CUDA_LINEAR(float16);
LOCKSTEP_CUDA_GATED_LINEAR(float);
LOCKSTEP_CUDA_GATED_LINEAR(bfloat16);
LOCKSTEP_CUDA_GATED_LINEAR(float16);
LOCKSTEP_CUDA_CHANNEL_BIAS(float);
LOCKSTEP_CUDA_CHANNEL_BIAS(bfloat16);
LOCKSTEP_CUDA_CHANNEL_BIAS(float16);
LOCKSTEP_CUDA_LINEAR_EACH(float, 2);
LOCKSTEP_CUDA_LINEAR_EACH(float, 3);
LOCKSTEP_CUDA_LINEAR_EACH(bfloat16, 2);
LOCKSTEP_CUDA_LINEAR_EACH(bfloat16, 3);
LOCKSTEP_CUDA_LINEAR_EACH(float16, 2);
LOCKSTEP_CUDA_LINEAR_EACH(float16, 3);

}}}  // namespace lockstep::kernel
