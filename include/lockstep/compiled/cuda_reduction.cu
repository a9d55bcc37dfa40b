// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/float16.hpp>
#include <lockstep/kernel/pooling/pooling.icuh>
#include <lockstep/kernel/reduction/dot_by_row.icuh>
#include <lockstep/kernel/reduction/nonzero_mask.icuh>
#include <lockstep/kernel/reduction/sum.icuh>
#include <lockstep/kernel/reduction/sum_buffers.icuh>
#include <lockstep/kernel/reduction/sum_of_squares.icuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

LOCKSTEP_CUDA_POOLING(float);
LOCKSTEP_CUDA_POOLING(bfloat16);
LOCKSTEP_CUDA_POOLING(float16);
LOCKSTEP_CUDA_DOT_BY_ROW(float);
LOCKSTEP_CUDA_DOT_BY_ROW(bfloat16);
LOCKSTEP_CUDA_DOT_BY_ROW(float16);
LOCKSTEP_CUDA_SUM_BUFFERS(float);
LOCKSTEP_CUDA_SUM_BUFFERS(double);
LOCKSTEP_CUDA_SUM_OF_SQUARES(float);
LOCKSTEP_CUDA_NONZERO_MASK(std::uint8_t);
LOCKSTEP_CUDA_NONZERO_MASK(std::int32_t);
LOCKSTEP_CUDA_NONZERO_MASK(std::int64_t);

}}}  // namespace lockstep::kernel
