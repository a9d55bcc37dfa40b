// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Everything of core to scaling that needs a C++ compiler and Linux, and nothing else.

#include <lockstep/core/clock.hpp>
#include <lockstep/core/contract.hpp>
#include <lockstep/core/element_type.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/core/json.hpp>
#include <lockstep/core/json_value.hpp>
#include <lockstep/core/json_writer.hpp>
#include <lockstep/core/keyed_permutation.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/core/nearest.hpp>
#include <lockstep/core/philox.hpp>
#include <lockstep/core/segment_plan.hpp>
#include <lockstep/core/sha256.hpp>
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

#include <lockstep/data/aggregate.hpp>
#include <lockstep/data/collate.hpp>
#include <lockstep/data/column.hpp>
#include <lockstep/data/columns.hpp>
#include <lockstep/data/csv_dataset.hpp>
#include <lockstep/data/csv_first_row.hpp>
#include <lockstep/data/data_loader.hpp>
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/hold_out.hpp>
#include <lockstep/data/in_memory_dataset.hpp>
#include <lockstep/data/labelled_files_dataset.hpp>
#include <lockstep/data/ngram_tokenizer.hpp>
#include <lockstep/data/pad_collate.hpp>
#include <lockstep/data/row.hpp>
#include <lockstep/data/sample_extent.hpp>
#include <lockstep/data/sampler.hpp>
#include <lockstep/data/sequential_sampler.hpp>
#include <lockstep/data/shuffled_sampler.hpp>
#include <lockstep/data/split.hpp>
#include <lockstep/data/subset.hpp>
#include <lockstep/data/token_counts.hpp>
#include <lockstep/data/transform.hpp>
#include <lockstep/data/vocabulary.hpp>
#include <lockstep/data/word_tokenizer.hpp>

#include <lockstep/kernel/attention.hpp>
#include <lockstep/kernel/cross_entropy.hpp>
#include <lockstep/kernel/dropout.hpp>
#include <lockstep/kernel/dropout_mask.hpp>
#include <lockstep/kernel/fused_embedding.hpp>
#include <lockstep/kernel/gemm.hpp>
#include <lockstep/kernel/optimizer_step.hpp>
#include <lockstep/kernel/pooling.hpp>
#include <lockstep/kernel/square_roots.hpp>
#include <lockstep/kernel/sum_of_squares.hpp>
#include <lockstep/kernel/write.hpp>

#include <lockstep/nn/context.hpp>
#include <lockstep/nn/cross_entropy.hpp>
#include <lockstep/nn/dropout.hpp>
#include <lockstep/nn/fused_embedding.hpp>
#include <lockstep/nn/gradient_check.hpp>
#include <lockstep/nn/initialize.hpp>
#include <lockstep/nn/loss.hpp>
#include <lockstep/nn/model.hpp>
#include <lockstep/nn/parameter.hpp>
#include <lockstep/nn/parameter_layout.hpp>
#include <lockstep/nn/pooling.hpp>
#include <lockstep/nn/sequence.hpp>
#include <lockstep/nn/variable.hpp>

#include <lockstep/optim/adamw.hpp>
#include <lockstep/optim/global_norm.hpp>
#include <lockstep/optim/learning_rate_scaling.hpp>
#include <lockstep/optim/optimizer.hpp>
#include <lockstep/optim/schedule.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/optim/slice.hpp>
#include <lockstep/optim/step_scalars.hpp>

#include <lockstep/launch/control_page.hpp>
#include <lockstep/launch/engine.hpp>
#include <lockstep/launch/environment.hpp>
#include <lockstep/launch/options.hpp>
#include <lockstep/launch/run.hpp>
#include <lockstep/launch/shared_segment.hpp>
#include <lockstep/launch/supervisor.hpp>
#include <lockstep/launch/wait_limits.hpp>
#include <lockstep/launch/world.hpp>

#include <lockstep/comm/any_communicator.hpp>
#include <lockstep/comm/communicator.hpp>
#include <lockstep/comm/connect.hpp>
#include <lockstep/comm/piece.hpp>
#include <lockstep/comm/process_communicator.hpp>
#include <lockstep/comm/self_communicator.hpp>
#include <lockstep/comm/thread_communicator.hpp>

#include <lockstep/parallel/data_parallel.hpp>
#include <lockstep/parallel/device_threads.hpp>
#include <lockstep/parallel/distributed_data_parallel.hpp>
#include <lockstep/parallel/gradient_buckets.hpp>
#include <lockstep/parallel/optimizer_state.hpp>
#include <lockstep/parallel/policy.hpp>
#include <lockstep/parallel/replica.hpp>
#include <lockstep/parallel/single_device.hpp>

#include <lockstep/train/accuracy.hpp>
#include <lockstep/train/atomic_file.hpp>
#include <lockstep/train/evaluation.hpp>
#include <lockstep/train/metric.hpp>
#include <lockstep/train/metrics_log.hpp>
#include <lockstep/train/observer.hpp>
#include <lockstep/train/parameters_sha256.hpp>
#include <lockstep/train/progress_bar.hpp>
#include <lockstep/train/run_json.hpp>
#include <lockstep/train/run_record.hpp>
#include <lockstep/train/safetensors.hpp>
#include <lockstep/train/trainer.hpp>

#include <lockstep/scaling/profile_of.hpp>
#include <lockstep/scaling/speed_up.hpp>
#include <lockstep/scaling/step_profile.hpp>
#include <lockstep/scaling/verdict.hpp>
