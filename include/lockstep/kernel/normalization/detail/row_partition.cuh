// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cuda_runtime.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/detail/dropped_row.cuh>
#include <lockstep/kernel/detail/rounded_product.cuh>
#include <lockstep/kernel/detail/vectorized_access.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Number of 16-byte groups of a row that one thread holds in registers, for `elements` elements, or a quarter of them
/// in double.
template <class Scalar>
[[nodiscard]] constexpr int held_groups(int elements) noexcept {
  return (sizeof(Scalar) == sizeof(double) ? elements / 4 : elements) / elements_per_access<Scalar>;
}

/// Returns whether accesses of 16 bytes are possible at this address. True for null, which is not accessed.
[[nodiscard]] inline bool is_aligned(void const* at) noexcept {
  return reinterpret_cast<std::uintptr_t>(at) % widest_access_bytes == 0;
}

/// Partition of a matrix's rows among cooperative groups: `lanes` threads process one row, a part of a warp, a warp, or
/// a block of several warps. The size depends only on the width and the element type, so a row's sums do not
/// depend on the number of rows.
struct RowPartition {
  static constexpr unsigned max_threads = 256;  ///< of a block

  int width;
  int lanes;          ///< a power of two
  int lane_bits;      ///< its logarithm: a division takes a thread 20 instructions
  bool wide;          ///< accesses of 16 bytes are possible in all matrices
  bool factors_wide;  ///< and in the vectors of parameters

  /// Returns whether a cooperative group's registers hold a row, if each thread has up to `groups` groups of elements.
  template <class Scalar, int groups>
  [[nodiscard]] static constexpr bool fit(Index width) noexcept {
    return width <= Index{max_threads} * groups * elements_per_access<Scalar>;
  }
  /// Returns the partition for rows that fit.
  template <class Scalar, int groups>
  [[nodiscard]] static RowPartition of(Index width, bool aligned, bool factors_aligned) noexcept {
    constexpr int held = groups * elements_per_access<Scalar>;
    auto const whole = width % elements_per_access<Scalar> == 0;
    auto const lanes = std::max(std::bit_ceil(static_cast<unsigned>((width + held - 1) / held)), 4u);
    return {static_cast<int>(width), static_cast<int>(lanes), std::countr_zero(lanes), whole && aligned,
            whole && factors_aligned};
  }

  /// Threads of a block: few for cooperative groups of less than a warp, so that few rows occupy many multiprocessors.
  [[nodiscard]] constexpr unsigned block() const noexcept {
    auto const size = static_cast<unsigned>(lanes);
    return size < warp ? 4 * warp : size == warp ? 8 * warp : size;
  }
  [[nodiscard]] constexpr Index rows_per_block() const noexcept { return block() >> lane_bits; }

  /// Returns the number of this thread's group in the block, and of the groups before it in its warp.
  [[nodiscard]] __device__ int group() const noexcept { return static_cast<int>(threadIdx.x) >> lane_bits; }
  [[nodiscard]] __device__ int group_of_warp() const noexcept {
    return static_cast<int>(threadIdx.x % warp) >> lane_bits;
  }
};

inline namespace LOCKSTEP_CUDA_ABI {

/// Returns the sums of `values` over a cooperative group, in a fixed order, with equal bits in each thread. All threads
/// of the group's warps must call it. cub::WarpReduce needs the number of lanes when the kernel is compiled, and sums
/// one value at a time.
template <class Sum, std::size_t count>
__device__ void sum_over_group(int lanes, Sum (&values)[count]) noexcept {
  for (int distance = min(lanes, static_cast<int>(warp)) / 2; distance > 0; distance /= 2)
    for (auto& value : values) value += __shfl_xor_sync(~0u, value, static_cast<unsigned>(distance));
  if (lanes <= static_cast<int>(warp)) return;
  __shared__ Sum shared[count][RowPartition::max_threads / warp];
  __syncthreads();  // wait until the last call's values were read
  if (lane() == 0)
    for (std::size_t k = 0; k < count; ++k) shared[k][threadIdx.x / warp] = values[k];
  __syncthreads();
  for (std::size_t k = 0; k < count; ++k) {
    values[k] = shared[k][0];
    for (int w = 1; w < lanes / static_cast<int>(warp); ++w) values[k] += shared[k][w];
  }
}

/// One thread's part of a row: groups of adjacent elements, `lanes` groups apart. An inactive thread has no elements.
/// Matrices are accessed 16 bytes at a time if they are `wide`, otherwise element by element, with equal results.
template <class Scalar, int max_groups, bool wide>
class RowPart {
 public:
  static constexpr int groups = max_groups, size = elements_per_access<Scalar>;
  using Number = Accumulate<Scalar>;
  using Numbers = AccessNumbers<Scalar>;
  /// Stored elements, in registers.
  struct Held {
    uint4 group[static_cast<std::size_t>(RowPart::groups)];
  };

  __device__ RowPart(RowPartition const& partition, bool active) noexcept
      : lanes_(partition.lanes),
        first_((static_cast<int>(threadIdx.x) & (partition.lanes - 1)) * size),
        width_(active ? partition.width : 0),
        factors_wide_(partition.factors_wide) {}

  [[nodiscard]] __device__ int first(int group) const noexcept { return first_ + group * lanes_ * size; }
  /// Whether the thread has any element of the group, or this one.
  [[nodiscard]] __device__ bool has(int group) const noexcept { return first(group) < width_; }
  [[nodiscard]] __device__ bool has(int group, int j) const noexcept { return first(group) + (wide ? 0 : j) < width_; }

  /// Loads all groups at once. Absent elements are zero.
  __device__ void load(Scalar const* row, Held& held) const noexcept {
    if constexpr (wide) {
      for_constants<groups>(
          [&](auto g) { held.group[g] = has(g) ? *reinterpret_cast<uint4 const*>(row + first(g)) : uint4{}; });
    } else {
      for_constants<groups>([&](auto g) {
        Scalar elements[static_cast<std::size_t>(size)];
        for (int j = 0; j < size; ++j) elements[j] = has(g, j) ? row[first(g) + j] : Scalar{};
        std::memcpy(&held.group[g], elements, sizeof elements);
      });
    }
  }
  /// Loads a group of a further row as numbers. Absent elements are zero.
  __device__ void load_numbers(int group, Scalar const* row, Numbers& x) const noexcept {
    Scalar elements[static_cast<std::size_t>(size)];
    load_elements(group, row + first(group), elements);
    for (int j = 0; j < size; ++j) x[j] = static_cast<Number>(elements[j]);
  }
  /// Stores one group's numbers, rounded, or adds them to the stored ones.
  __device__ void put(int group, Numbers const& x, Scalar* row, Write write) const noexcept {
    if (!has(group)) return;
    auto* const to = row + first(group);
    Scalar elements[static_cast<std::size_t>(size)];
    if (write == Write::add) load_elements(group, to, elements);
    for (int j = 0; j < size; ++j)
      elements[j] =
          static_cast<Scalar>(write == Write::add ? rounded_sum(static_cast<Number>(elements[j]), x[j]) : x[j]);
    store(group, elements, row);
  }
  /// Returns the held group as numbers.
  __device__ static void numbers(uint4 const& group, Numbers& x) noexcept {
    Scalar elements[static_cast<std::size_t>(size)];
    std::memcpy(static_cast<void*>(elements), &group, sizeof elements);
    for (int j = 0; j < size; ++j) x[j] = static_cast<Number>(elements[j]);
  }
  /// Rounds x to the stored type, and stores it unless `row` is null.
  __device__ void hold(int group, Numbers& x, uint4& held, Scalar* row) const noexcept {
    Scalar elements[static_cast<std::size_t>(size)];
    for (int j = 0; j < size; ++j) {
      elements[j] = static_cast<Scalar>(x[j]);
      x[j] = static_cast<Number>(elements[j]);
    }
    std::memcpy(&held, elements, sizeof elements);
    if (row && has(group)) store(group, elements, row);
  }
  /// Loads a group of a vector of parameters. Absent elements are zero.
  __device__ void factors(int group, Number const* vector, Numbers& x) const noexcept {
    constexpr int step = elements_per_access<Number>;
    if (factors_wide_ && has(group)) {
      for (int j = 0; j < size; j += step) {
        uint4 const piece = *reinterpret_cast<uint4 const*>(vector + first(group) + j);
        std::memcpy(static_cast<void*>(x + j), &piece, sizeof piece);
      }
    } else {
      for (int j = 0; j < size; ++j) x[j] = has(group, j) ? vector[first(group) + j] : Number{0};
    }
  }

 private:
  __device__ void load_elements(int group, Scalar const* from,
                                Scalar (&to)[static_cast<std::size_t>(size)]) const noexcept {
    if constexpr (wide) {
      uint4 const piece = *reinterpret_cast<uint4 const*>(from);
      std::memcpy(static_cast<void*>(to), &piece, sizeof piece);
    } else {
      for (int j = 0; j < size; ++j) to[j] = has(group, j) ? from[j] : Scalar{};
    }
  }
  __device__ void store(int group, Scalar const (&elements)[static_cast<std::size_t>(size)],
                        Scalar* row) const noexcept {
    auto* const to = row + first(group);
    if constexpr (wide) {
      uint4 piece;
      std::memcpy(&piece, elements, sizeof piece);
      __stwb(reinterpret_cast<uint4*>(to), piece);
    } else {
      for (int j = 0; j < size; ++j)
        if (has(group, j)) to[j] = elements[j];
    }
  }

  int lanes_, first_, width_;
  bool factors_wide_;
};

}  // namespace LOCKSTEP_CUDA_ABI
}}}  // namespace lockstep::kernel::detail
