// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <lockstep/core/segment_plan.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/embedding/assembly.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Counts that one entry of the sorted list contributes: of rows, of chunks, and of rows with several chunks.
struct SegmentCount {
  std::uint32_t rows, chunks, several;
};

/// A SegmentPlan that is built on the device and stays there, without waiting. Only the device knows its counts, so
/// kernels are launched for their upper bounds. The plan is in the caller's memory. Only the number of slots determines
/// the memory's size and layout, so recorded work may plan other ids each time.
class DeviceSegmentPlan {
 public:
  /// Returns the elements of memory that a plan needs, including its construction.
  /// @throws CudaError
  [[nodiscard]] static Index elements(Index slots);

  [[nodiscard]] std::uint32_t* order() const noexcept { return memory_; }
  [[nodiscard]] std::uint32_t* first() const noexcept { return memory_ + at(1, slots_); }
  [[nodiscard]] std::uint32_t* begin() const noexcept { return memory_ + at(2, slots_); }
  [[nodiscard]] std::uint32_t* chunk_row() const noexcept { return memory_ + at(3, slots_); }
  /// Returns the numbers of the rows with several chunks.
  [[nodiscard]] std::uint32_t* several() const noexcept { return memory_ + at(4, slots_); }
  [[nodiscard]] std::int32_t* rows() const noexcept { return reinterpret_cast<std::int32_t*>(memory_ + at(5, slots_)); }
  /// Returns the counts, one element.
  [[nodiscard]] SegmentCount* total() const noexcept;

  /// Returns the largest possible number of chunks: the last chunk of each row may have a single slot.
  [[nodiscard]] Index chunks() const noexcept { return std::min(slots_, vocabulary_ + slots_ / chunk); }
  /// Returns the largest possible number of rows with several chunks.
  [[nodiscard]] Index max_several() const noexcept { return slots_ / (chunk + 1); }

  /// Plans the slots of an assembled sequence that come from `segment`, by the ids of its entries. Ignores ids outside
  /// [0, vocabulary).
  /// @shape memory [elements(slots)], which the plan uses during its lifetime
  void build(memory::Stream<CudaSpace> stream, Assembly<CudaSpace> const& assembly, int segment,
             std::int32_t const* ids, Index vocabulary, TensorView<std::int32_t, 1, CudaSpace> memory);

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

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/embedding/detail/device_segment_plan.icuh>
#endif
