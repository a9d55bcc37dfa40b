// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Device code of the policies for CudaSpace. Include it to train with parallel::OnCuda.
#include <lockstep/kernel/binary_operation.cuh>
#include <lockstep/kernel/convert.cuh>
#include <lockstep/kernel/move.cuh>
#include <lockstep/kernel/step_key.cuh>
#include <lockstep/kernel/total.cuh>
#include <lockstep/parallel/detail/block_squares.cuh>
#include <lockstep/parallel/detail/copied_rows.cuh>
#include <lockstep/parallel/detail/device.cuh>
#include <lockstep/parallel/detail/host_exchange.cuh>
#include <lockstep/parallel/detail/replica_sum.cuh>
#include <lockstep/parallel/detail/step_scalars.cuh>
