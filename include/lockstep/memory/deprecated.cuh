// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>

#include <lockstep/memory/cuda_graph_cache.cuh>
#include <lockstep/memory/cuda_prefetcher.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace memory {

/// Old names, for one version.
using CudaInbox [[deprecated("memory::CudaPrefetcher")]] = CudaPrefetcher;
template <std::equality_comparable Key, class Outcome>
using CudaRecordings [[deprecated("memory::CudaGraphCache")]] = CudaGraphCache<Key, Outcome>;
[[deprecated("memory::is_capturing")]] [[nodiscard]] inline bool is_recorded(Stream<CudaSpace> stream) {
  return is_capturing(stream);
}

}}}  // namespace lockstep::memory
