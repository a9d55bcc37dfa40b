// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/float16.hpp>
#include <lockstep/kernel/loss/cross_entropy.icuh>
#include <lockstep/kernel/loss/ctc.icuh>
#include <lockstep/kernel/loss/elementwise_loss.icuh>
#include <lockstep/kernel/loss/soft_cross_entropy.icuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

LOCKSTEP_CUDA_CROSS_ENTROPIES(template, float);
LOCKSTEP_CUDA_CROSS_ENTROPIES(template, bfloat16);
LOCKSTEP_CUDA_CROSS_ENTROPIES(template, float16);
LOCKSTEP_CUDA_CTC(template, float);
LOCKSTEP_CUDA_CTC(template, bfloat16);
LOCKSTEP_CUDA_CTC(template, float16);
LOCKSTEP_CUDA_ELEMENTWISE_LOSSES(template, float);
LOCKSTEP_CUDA_ELEMENTWISE_LOSSES(template, bfloat16);
LOCKSTEP_CUDA_ELEMENTWISE_LOSSES(template, float16);
LOCKSTEP_CUDA_LOSSES_OF_PREDICTION(template, float);
LOCKSTEP_CUDA_LOSSES_OF_PREDICTION(template, bfloat16);
LOCKSTEP_CUDA_SOFT_CROSS_ENTROPY(template, float);
LOCKSTEP_CUDA_SOFT_CROSS_ENTROPY(template, bfloat16);
LOCKSTEP_CUDA_SOFT_CROSS_ENTROPY(template, float16);

}}}  // namespace lockstep::kernel
