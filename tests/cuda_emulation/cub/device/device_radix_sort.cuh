// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include <cuda_runtime.h>

namespace cub {

struct DeviceRadixSort {
  /// As in CUB: the bits [first_bit, last_bit) of the keys count, equal keys keep their order, and without temporary
  /// storage only its size is returned.
  template <class Key, class Value, class Count>
  static cudaError_t SortPairs(void* temporary, std::size_t& bytes, Key const* keys, Key* sorted, Value const* values,
                               Value* sorted_values, Count count, int first_bit = 0, int last_bit = sizeof(Key) * 8,
                               cudaStream_t stream = nullptr) {
    if (!temporary) return bytes = 1, cudaSuccess;
    cuda_emulation::queue(stream, [=] {
      sort(keys, sorted, values, sorted_values, static_cast<std::size_t>(count), first_bit, last_bit);
    });
    return cudaPeekAtLastError();  // from an earlier call
  }

 private:
  template <class Key, class Value>
  static void sort(Key const* keys, Key* sorted, Value const* values, Value* sorted_values, std::size_t count,
                   int first_bit, int last_bit) {
    auto const relevant = [=](Key key) {
      auto const above = last_bit == sizeof(Key) * 8 ? key : key & ((Key{1} << last_bit) - 1);
      return above >> first_bit;
    };
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return relevant(keys[a]) < relevant(keys[b]); });
    for (std::size_t i = 0; i < order.size(); ++i) {
      sorted[i] = keys[order[i]];
      sorted_values[i] = values[order[i]];
    }
  }
};

}  // namespace cub
