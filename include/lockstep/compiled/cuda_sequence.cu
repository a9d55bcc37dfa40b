// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/float16.hpp>
#include <lockstep/kernel/recurrent/recurrent.icuh>
#include <lockstep/kernel/sequence/sequence_operation.icuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

LOCKSTEP_CUDA_RECURRENT(template, float);
LOCKSTEP_CUDA_RECURRENT(template, bfloat16);
LOCKSTEP_CUDA_RECURRENT(template, float16);
LOCKSTEP_CUDA_SEQUENCE_OPERATIONS(template, float);
LOCKSTEP_CUDA_SEQUENCE_OPERATIONS(template, bfloat16);
LOCKSTEP_CUDA_SEQUENCE_OPERATIONS(template, float16);

}}}  // namespace lockstep::kernel
