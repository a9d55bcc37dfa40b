// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/float16.hpp>
#include <lockstep/kernel/attention/attention.icuh>
#include <lockstep/kernel/attention/relative_bias.icuh>
#include <lockstep/kernel/attention/rotary.icuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

LOCKSTEP_CUDA_ATTENTION(float);
LOCKSTEP_CUDA_ATTENTION(bfloat16);
LOCKSTEP_CUDA_ATTENTION(float16);
LOCKSTEP_CUDA_RELATIVE_BIAS(float);
LOCKSTEP_CUDA_RELATIVE_BIAS(bfloat16);
LOCKSTEP_CUDA_RELATIVE_BIAS(float16);
LOCKSTEP_CUDA_ROTARY(float);
LOCKSTEP_CUDA_ROTARY(bfloat16);
LOCKSTEP_CUDA_ROTARY(float16);

}}}  // namespace lockstep::kernel
