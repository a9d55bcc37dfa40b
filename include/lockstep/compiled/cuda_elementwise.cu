// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/float16.hpp>
#include <lockstep/kernel/copy/channels.icuh>
#include <lockstep/kernel/copy/convert.icuh>
#include <lockstep/kernel/copy/permute.icuh>
#include <lockstep/kernel/elementwise/binary_operation.icuh>
#include <lockstep/kernel/elementwise/channel_scale.icuh>
#include <lockstep/kernel/elementwise/elementwise.icuh>
#include <lockstep/kernel/elementwise/learned_scale.icuh>
#include <lockstep/kernel/keep_busy.icuh>
#include <lockstep/kernel/random/dropout.icuh>
#include <lockstep/kernel/random/sample_dropout.icuh>
#include <lockstep/kernel/random/standard_normal.icuh>
#include <lockstep/kernel/random/step_key.icuh>
#include <lockstep/kernel/sequence/arange.icuh>
#include <lockstep/kernel/sequence/clear_padding.icuh>
#include <lockstep/kernel/sequence/strided_rows.icuh>
#include <lockstep/kernel/sequence/token_slots.icuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

LOCKSTEP_CUDA_CONVERT(template, bfloat16);
LOCKSTEP_CUDA_CONVERT(template, float16);
LOCKSTEP_CUDA_CONVERT_TO(template, float, float);
LOCKSTEP_CUDA_CONVERT_OR_ADD(template, float, float);
LOCKSTEP_CUDA_BINARY_OPERATIONS(template, float);
LOCKSTEP_CUDA_BINARY_OPERATIONS(template, bfloat16);
LOCKSTEP_CUDA_BINARY_OPERATIONS(template, float16);
LOCKSTEP_CUDA_BINARY_FORWARD(template, Plus, double);
LOCKSTEP_CUDA_BINARY_BACKWARD(template, FirstOperand, double);
LOCKSTEP_CUDA_ACTIVATIONS(template, float);
LOCKSTEP_CUDA_ACTIVATIONS(template, bfloat16);
LOCKSTEP_CUDA_ACTIVATIONS(template, float16);
LOCKSTEP_CUDA_CHANNELS(float);
LOCKSTEP_CUDA_CHANNELS(bfloat16);
LOCKSTEP_CUDA_CHANNELS(float16);
LOCKSTEP_CUDA_PERMUTE(float);
LOCKSTEP_CUDA_PERMUTE(bfloat16);
LOCKSTEP_CUDA_PERMUTE(float16);
LOCKSTEP_CUDA_CHANNEL_SCALE(float);
LOCKSTEP_CUDA_CHANNEL_SCALE(bfloat16);
LOCKSTEP_CUDA_CHANNEL_SCALE(float16);
LOCKSTEP_CUDA_LEARNED_SCALE(float);
LOCKSTEP_CUDA_LEARNED_SCALE(bfloat16);
LOCKSTEP_CUDA_LEARNED_SCALE(float16);
LOCKSTEP_CUDA_DROPOUT(float);
LOCKSTEP_CUDA_DROPOUT(bfloat16);
LOCKSTEP_CUDA_DROPOUT(float16);
LOCKSTEP_CUDA_SAMPLE_DROPOUT(float);
LOCKSTEP_CUDA_SAMPLE_DROPOUT(bfloat16);
LOCKSTEP_CUDA_SAMPLE_DROPOUT(float16);
LOCKSTEP_CUDA_STANDARD_NORMAL(float);
LOCKSTEP_CUDA_STANDARD_NORMAL(bfloat16);
LOCKSTEP_CUDA_STANDARD_NORMAL(float16);
LOCKSTEP_CUDA_CLEAR_PADDING(float);
LOCKSTEP_CUDA_CLEAR_PADDING(bfloat16);
LOCKSTEP_CUDA_CLEAR_PADDING(float16);
LOCKSTEP_CUDA_STRIDED_ROWS(float);
LOCKSTEP_CUDA_STRIDED_ROWS(bfloat16);
LOCKSTEP_CUDA_STRIDED_ROWS(float16);

}}}  // namespace lockstep::kernel
