// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/float16.hpp>
#include <lockstep/kernel/embedding/detail/device_segment_plan.icuh>
#include <lockstep/kernel/embedding/fused_embedding.icuh>
#include <lockstep/kernel/embedding/nonzero_rows.icuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

LOCKSTEP_CUDA_FUSED_EMBEDDING(float);
LOCKSTEP_CUDA_FUSED_EMBEDDING(bfloat16);
LOCKSTEP_CUDA_FUSED_EMBEDDING(float16);
LOCKSTEP_CUDA_FUSED_EMBEDDING_BOUND(Index);
LOCKSTEP_CUDA_FUSED_EMBEDDING_BOUND(std::int32_t);
LOCKSTEP_CUDA_NONZERO_ROWS(float);

}}}  // namespace lockstep::kernel
