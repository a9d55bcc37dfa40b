// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Everything of core to scaling that needs a C++ compiler and Linux, and nothing else.

#include <lockstep/core/clock.hpp>
#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/core/thread_pool.hpp>
#include <lockstep/core/tree_sum.hpp>
#include <lockstep/core/version.hpp>
#include <lockstep/core/wait.hpp>

#include <lockstep/memory/block.hpp>
#include <lockstep/memory/buffer.hpp>
#include <lockstep/memory/resource.hpp>
#include <lockstep/memory/scratch.hpp>
#include <lockstep/memory/space.hpp>
#include <lockstep/memory/stream.hpp>

#include <lockstep/kernel/write.hpp>

#include <lockstep/nn/context.hpp>
#include <lockstep/nn/gradient_check.hpp>
#include <lockstep/nn/initialize.hpp>
#include <lockstep/nn/loss.hpp>
#include <lockstep/nn/model.hpp>
#include <lockstep/nn/parameter.hpp>
#include <lockstep/nn/parameter_layout.hpp>
#include <lockstep/nn/sequence.hpp>
#include <lockstep/nn/variable.hpp>

#include <lockstep/parallel/data_parallel.hpp>
#include <lockstep/parallel/device_threads.hpp>
#include <lockstep/parallel/distributed_data_parallel.hpp>
#include <lockstep/parallel/gradient_buckets.hpp>
#include <lockstep/parallel/optimizer_state.hpp>
#include <lockstep/parallel/policy.hpp>
#include <lockstep/parallel/replica.hpp>
#include <lockstep/parallel/single_device.hpp>

#include <lockstep/train/accuracy.hpp>
#include <lockstep/train/evaluation.hpp>
#include <lockstep/train/metric.hpp>
#include <lockstep/train/observer.hpp>
#include <lockstep/train/run_record.hpp>
#include <lockstep/train/trainer.hpp>
