// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include <lockstep/core/segment_plan.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/detail/launch.cuh>
#include <lockstep/kernel/embedding/assembly.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Counts that one entry of the sorted list contributes: of rows, of chunks, and of rows with several chunks.
struct SegmentCount {
  std::uint32_t rows, chunks, several;
};
struct AddCounts {
  __device__ SegmentCount operator()(SegmentCount a, SegmentCount b) const noexcept {
    return {a.rows + b.rows, a.chunks + b.chunks, a.several + b.several};
  }
};

inline namespace LOCKSTEP_CUDA_ABI {

/// Lists the ids with their slots. Slots of other segments and padding get the key `padding`, which is above all ids,
/// so they sort to the end of the list.
template <class Id>
LOCKSTEP_CUDA_KERNEL void list_ids(Assembly<CudaSpace> assembly, int segment, Id const* ids, std::uint32_t padding,
                                   std::uint32_t* keys, std::uint32_t* order) {
  for (auto i = grid_thread(); i < assembly.layout.slots; i += grid_threads()) {
    auto const row = assembly.layout.row_of(i), token = i - assembly.layout.start(row);
    auto key = padding;
    if (token < assembly.layout.tokens(row)) {
      auto const location = assembly.locate(row, token);
      if (location.segment == segment)
        key = min(padding, static_cast<std::uint32_t>(ids[assembly.entry(row, location)]));
    }
    keys[i] = key;
    order[i] = static_cast<std::uint32_t>(i);
  }
}
/// Finds the start of each entry's row by a search among the sorted keys before it, and the entry's counts.
template <class Key>
LOCKSTEP_CUDA_KERNEL void mark(Key const* keys, Index slots, Key padding, std::uint32_t* row_start,
                               SegmentCount* counts) {
  for (auto i = grid_thread(); i < slots; i += grid_threads()) {
    auto const key = keys[i];
    Index first = 0, last = i;
    while (first < last) {
      auto const middle = (first + last) / 2;
      if (keys[middle] < key)
        first = middle + 1;
      else
        last = middle;
    }
    auto const in_row = static_cast<std::uint32_t>(i - first);
    bool const token = key != padding;
    row_start[i] = static_cast<std::uint32_t>(first);
    counts[i] = {token && in_row == 0, token && in_row % SegmentPlan::chunk == 0,
                 token && in_row == SegmentPlan::chunk};
  }
}
/// Writes `rows`, `first` and `begin` for entries that begin a row or a chunk, and the ends after the last of them.
/// Writes `several` for entries that begin a row's second chunk.
template <class Key>
LOCKSTEP_CUDA_KERNEL void cut(Key const* keys, std::uint32_t const* row_start, SegmentCount const* counts, Index slots,
                              Key padding, std::int32_t* rows, std::uint32_t* first, std::uint32_t* begin,
                              std::uint32_t* chunk_row, std::uint32_t* several, SegmentCount* total) {
  for (auto i = grid_thread(); i < slots; i += grid_threads()) {
    auto const in_row = static_cast<std::uint32_t>(i) - row_start[i];
    auto const count = counts[i];
    bool const token = keys[i] != padding;
    if (token && in_row == 0) {
      rows[count.rows - 1] = static_cast<std::int32_t>(keys[i]);
      first[count.rows - 1] = count.chunks - 1;
    }
    if (token && in_row % SegmentPlan::chunk == 0) {
      begin[count.chunks - 1] = static_cast<std::uint32_t>(i);
      chunk_row[count.chunks - 1] = count.rows - 1;
    }
    if (token && in_row == SegmentPlan::chunk) several[count.several - 1] = count.rows - 1;
    bool const last_token = token && (i + 1 == slots || keys[i + 1] == padding);
    if (last_token) {
      first[count.rows] = count.chunks;
      begin[count.chunks] = static_cast<std::uint32_t>(i) + 1;
      *total = count;
    }
    if (i == 0 && !token) *total = {0, 0, 0};
  }
}

}  // namespace LOCKSTEP_CUDA_ABI

/// A SegmentPlan that is built on the device and stays there, without waiting. Only the device knows its counts, so
/// kernels are launched for their upper bounds. The plan is in the caller's memory. Only the number of slots determines
/// the memory's size and layout, so recorded work may plan other ids each time.
class DeviceSegmentPlan {
 public:
  /// Returns the elements of memory that a plan needs, including its construction.
  /// @throws CudaError
  [[nodiscard]] static Index elements(Index slots) {
    std::size_t sort = 0, sums = 0;
    std::uint32_t* const none = nullptr;
    SegmentCount* const no_count = nullptr;
    memory::check_cuda(cub::DeviceRadixSort::SortPairs(nullptr, sort, none, none, none, none, slots),
                       "cub::DeviceRadixSort");
    memory::check_cuda(cub::DeviceScan::InclusiveScan(nullptr, sums, no_count, no_count, AddCounts{}, slots),
                       "cub::DeviceScan");
    return at(temporary, slots) + static_cast<Index>((std::max(sort, sums) + element - 1) / element) + 1;
  }

  [[nodiscard]] std::uint32_t* order() const noexcept { return memory_; }
  [[nodiscard]] std::uint32_t* first() const noexcept { return memory_ + at(1, slots_); }
  [[nodiscard]] std::uint32_t* begin() const noexcept { return memory_ + at(2, slots_); }
  [[nodiscard]] std::uint32_t* chunk_row() const noexcept { return memory_ + at(3, slots_); }
  /// Returns the numbers of the rows with several chunks.
  [[nodiscard]] std::uint32_t* several() const noexcept { return memory_ + at(4, slots_); }
  [[nodiscard]] std::int32_t* rows() const noexcept { return reinterpret_cast<std::int32_t*>(memory_ + at(5, slots_)); }
  /// Returns the counts, one element.
  [[nodiscard]] SegmentCount* total() const noexcept {
    return reinterpret_cast<SegmentCount*>(memory_ + at(6, slots_));
  }

  /// Returns the largest possible number of chunks: the last chunk of each row may have a single slot.
  [[nodiscard]] Index chunks() const noexcept { return std::min(slots_, vocabulary_ + slots_ / chunk); }
  /// Returns the largest possible number of rows with several chunks.
  [[nodiscard]] Index max_several() const noexcept { return slots_ / (chunk + 1); }

  /// Plans the slots of an assembled sequence that come from `segment`, by the ids of its entries. Ignores ids outside
  /// [0, vocabulary).
  /// @shape memory [elements(slots)], which the plan uses during its lifetime
  void build(memory::Stream<CudaSpace> stream, Assembly<CudaSpace> const& assembly, int segment,
             std::int32_t const* ids, Index vocabulary, TensorView<std::int32_t, 1, CudaSpace> memory) {
    auto const slots = slots_ = assembly.layout.slots;
    memory_ = reinterpret_cast<std::uint32_t*>(memory.data);
    vocabulary_ = vocabulary;
    auto const padding = static_cast<std::uint32_t>(vocabulary);
    auto const s = stream.get();
    if (slots == 0) return memory::check_cuda(cudaMemsetAsync(total(), 0, sizeof(SegmentCount), s), "cudaMemsetAsync");
    auto* const keys = memory_ + at(7, slots);
    auto* const sorted = memory_ + at(8, slots);
    auto* const entries = memory_ + at(9, slots);
    auto* const row_start = entries;  // entries are sorted by then
    auto* const counts = reinterpret_cast<SegmentCount*>(memory_ + at(10, slots));
    auto* const work = memory_ + at(temporary, slots);
    auto bytes = static_cast<std::size_t>(memory.size() - at(temporary, slots)) * element;
    auto const name = "kernel::FusedEmbedding::plan";
    launch(name, stream, slots, list_ids<std::int32_t>, assembly, segment, ids, padding, keys, entries);
    memory::check_cuda(cub::DeviceRadixSort::SortPairs(work, bytes, keys, sorted, entries, order(), slots, 0,
                                                       static_cast<int>(std::bit_width(padding)), s),
                       "cub::DeviceRadixSort");
    launch(name, stream, slots, mark<std::uint32_t>, sorted, slots, padding, row_start, counts);
    memory::check_cuda(cub::DeviceScan::InclusiveScan(work, bytes, counts, counts, AddCounts{}, slots, s),
                       "cub::DeviceScan");
    launch(name, stream, slots, cut<std::uint32_t>, sorted, row_start, counts, slots, padding, rows(), first(), begin(),
           chunk_row(), several(), total());
  }

 private:
  static constexpr auto chunk = static_cast<Index>(SegmentPlan::chunk);
  static constexpr std::size_t element = sizeof(std::uint32_t);
  static constexpr int temporary = 13;  // the counts are three arrays

  /// Returns the offset of the n-th array, aligned to 16 bytes. Each array has room for one element more than there are
  /// slots, and for at least three.
  [[nodiscard]] static constexpr Index at(int n, Index slots) noexcept { return n * ((slots + 4) / 4 * 4); }

  std::uint32_t* memory_ = nullptr;
  Index slots_ = 0, vocabulary_ = 0;
};

}}}  // namespace lockstep::kernel::detail
