// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Everything that needs nvcc.
#include <lockstep/comm/nccl_communicator.cuh>
#include <lockstep/kernel/add.cuh>
#include <lockstep/kernel/attention.cuh>
#include <lockstep/kernel/batch_norm.cuh>
#include <lockstep/kernel/convert.cuh>
#include <lockstep/kernel/convolution.cuh>
#include <lockstep/kernel/cross_entropy.cuh>
#include <lockstep/kernel/dropout.cuh>
#include <lockstep/kernel/elementwise.cuh>
#include <lockstep/kernel/elementwise_loss.cuh>
#include <lockstep/kernel/every_row.cuh>
#include <lockstep/kernel/fused_embedding.cuh>
#include <lockstep/kernel/gated_linear.cuh>
#include <lockstep/kernel/gelu.cuh>
#include <lockstep/kernel/gemm.cuh>
#include <lockstep/kernel/image_input.cuh>
#include <lockstep/kernel/layer_norm.cuh>
#include <lockstep/kernel/linear.cuh>
#include <lockstep/kernel/move.cuh>
#include <lockstep/kernel/optimizer_step.cuh>
#include <lockstep/kernel/pooling.cuh>
#include <lockstep/kernel/relative_bias.cuh>
#include <lockstep/kernel/rms_norm.cuh>
#include <lockstep/kernel/space_pooling.cuh>
#include <lockstep/kernel/step_key.cuh>
#include <lockstep/kernel/sum_into_first.cuh>
#include <lockstep/kernel/sum_of_squares.cuh>
#include <lockstep/kernel/total.cuh>
#include <lockstep/kernel/truth.cuh>
#include <lockstep/memory/cuda.cuh>
#include <lockstep/memory/cuda_graph.cuh>
#include <lockstep/memory/cuda_inbox.cuh>
#include <lockstep/memory/cuda_recordings.cuh>
#include <lockstep/parallel/cuda.cuh>
