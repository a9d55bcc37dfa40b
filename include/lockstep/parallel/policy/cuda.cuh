// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Device code of the policies for CudaSpace. Include it to train with parallel::OnCuda.
#include <lockstep/kernel/copy/convert.cuh>
#include <lockstep/kernel/copy/copy.cuh>
#include <lockstep/kernel/elementwise/binary_operation.cuh>
#include <lockstep/kernel/random/step_key.cuh>
#include <lockstep/kernel/reduction/sum.cuh>
#include <lockstep/parallel/detail/block_squares.cuh>
#include <lockstep/parallel/detail/device.cuh>
#include <lockstep/parallel/detail/host_exchange.cuh>
#include <lockstep/parallel/detail/step_scalars.cuh>
#include <lockstep/parallel/policy/detail/device_rows.cuh>
#include <lockstep/parallel/policy/detail/host_staged_rows.cuh>
#include <lockstep/parallel/policy/detail/replica_sum.cuh>
