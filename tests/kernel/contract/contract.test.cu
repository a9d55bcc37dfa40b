// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/contract/contract.hpp>

#include <doctest/doctest.h>

#include <lockstep/kernel/attention/attention.cuh>
#include <lockstep/kernel/attention/relative_bias.cuh>
#include <lockstep/kernel/attention/rotary.cuh>
#include <lockstep/kernel/convolution/convolution.cuh>
#include <lockstep/kernel/convolution/image_input.cuh>
#include <lockstep/kernel/convolution/pad.cuh>
#include <lockstep/kernel/convolution/upsample.cuh>
#include <lockstep/kernel/copy/channels.cuh>
#include <lockstep/kernel/copy/convert.cuh>
#include <lockstep/kernel/copy/copy.cuh>
#include <lockstep/kernel/elementwise/binary_operation.cuh>
#include <lockstep/kernel/elementwise/channel_bias.cuh>
#include <lockstep/kernel/elementwise/channel_scale.cuh>
#include <lockstep/kernel/elementwise/elementwise.cuh>
#include <lockstep/kernel/elementwise/learned_scale.cuh>
#include <lockstep/kernel/embedding/fused_embedding.cuh>
#include <lockstep/kernel/gemm/gemm.cuh>
#include <lockstep/kernel/linear/gated_linear.cuh>
#include <lockstep/kernel/linear/linear.cuh>
#include <lockstep/kernel/loss/cross_entropy.cuh>
#include <lockstep/kernel/loss/ctc.cuh>
#include <lockstep/kernel/loss/elementwise_loss.cuh>
#include <lockstep/kernel/loss/soft_cross_entropy.cuh>
#include <lockstep/kernel/normalization/batch_norm.cuh>
#include <lockstep/kernel/normalization/group_norm.cuh>
#include <lockstep/kernel/normalization/l2_normalize.cuh>
#include <lockstep/kernel/normalization/layer_norm.cuh>
#include <lockstep/kernel/normalization/log_softmax.cuh>
#include <lockstep/kernel/normalization/rms_norm.cuh>
#include <lockstep/kernel/normalization/softmax.cuh>
#include <lockstep/kernel/optimizer/optimizer_step.cuh>
#include <lockstep/kernel/pooling/pooling.cuh>
#include <lockstep/kernel/pooling/spatial_pooling.cuh>
#include <lockstep/kernel/random/dropout.cuh>
#include <lockstep/kernel/random/sample_dropout.cuh>
#include <lockstep/kernel/random/standard_normal.cuh>
#include <lockstep/kernel/random/step_key.cuh>
#include <lockstep/kernel/recurrent/recurrent.cuh>
#include <lockstep/kernel/reduction/dot_by_row.cuh>
#include <lockstep/kernel/reduction/sum.cuh>
#include <lockstep/kernel/sequence/arange.cuh>
#include <lockstep/kernel/sequence/clear_padding.cuh>
#include <lockstep/kernel/sequence/sequence_operation.cuh>
#include <lockstep/kernel/sequence/strided_rows.cuh>

using namespace lockstep;

TEST_CASE("CUDA offers the functions that the host offers") {
  static_assert(kernel::has_all_kernels<HostSpace>() && kernel::has_all_kernels<CudaSpace>());
  CHECK(kernel::HasLinear<CudaSpace>);
}
