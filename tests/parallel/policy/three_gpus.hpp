// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/parallel/policy/on_cuda.hpp>

/// A program without nvcc that finds three GPUs: it can query their number, not use them.
namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel {
template <>
struct DevicesOf<CudaSpace> {
  static int count() { return 3; }
};
}}}  // namespace lockstep::parallel
