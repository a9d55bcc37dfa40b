// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Calls that mark what a profiler records. There is none.
#include "cuda_runtime.h"

inline cudaError_t cudaProfilerStart() { return cudaSuccess; }
inline cudaError_t cudaProfilerStop() { return cudaSuccess; }
