// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstring>

#include <cuda_runtime.h>

namespace cub {

enum BlockReduceAlgorithm { BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY };

/// As in CUB, in the same order: only the first thread gets the result, the others get a NaN.
template <class T, int threads, BlockReduceAlgorithm>
class BlockReduce {
  static constexpr int warp = 32, others = threads / warp - 1;
  static_assert(threads % warp == 0 && threads > warp, "CUB uses another order for other blocks");

 public:
  struct TempStorage {
    T values[std::size_t{threads}];
  };
  explicit BlockReduce(TempStorage& storage) : values_(storage.values) {}

  template <class Operation>
  T Reduce(T value, Operation operation, char const* file = __builtin_FILE(), int line = __builtin_LINE()) {
    values_[threadIdx.x] = value;
    __syncthreads(file, line);
    if (threadIdx.x > 0) {
      std::memset(&value, 0xff, sizeof value);
      return value;
    }
    for (int lane = 0; lane < warp; ++lane)
      for (int i = 0; i < others; ++i) values_[lane] = operation(values_[lane], values_[warp + lane * others + i]);
    for (int distance = 1; distance < warp; distance *= 2)
      for (int lane = 0; lane + distance < warp; lane += 2 * distance)
        values_[lane] = operation(values_[lane], values_[lane + distance]);
    return values_[0];
  }

 private:
  T* values_;
};

}  // namespace cub
