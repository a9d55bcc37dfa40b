// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <span>

#include <lockstep/core/element_type.hpp>
#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm {

using lockstep::ElementType;

/// Reduction over the ranks' elements. Integers wrap.
enum class Reduction : std::uint32_t {
  sum,          ///< sum in the balanced binary tree over ranks; bfloat16 and float16 in float32, rounded once
  average,      ///< that sum, before rounding, divided by the number of ranks; not for integers
  max,          ///< nan if any rank has nan
  logical_or,   ///< 1 if any rank has a nonzero element, else 0; for integers
  logical_and,  ///< 1 if all ranks have a nonzero element, else 0; for integers
};

/// Kind of a collective operation. n is the number of ranks.
enum class Collective : std::uint32_t {
  all_reduce,      ///< data[i] = the reduction over all ranks' data[i]
  reduce_scatter,  ///< data[i] = the reduction over all ranks' in[rank * count + i]; `in` has n * count elements
  all_gather,      ///< data[r * count + i] = in[i] of rank r; data has n * count elements
  broadcast,       ///< data[i] = data[i] of rank `root`
  barrier,         ///< complete when all ranks have started it
  allocate,        ///< used by the engines' `allocate`, which transfers no data; `start` refuses it
};

/// One collective operation: by default an in-place sum of elements, with some piggybacked doubles. Elements or doubles
/// may be empty. After `start`, the object and its memory must stay in place, unread and unwritten, until it is
/// complete.
struct CollectiveOperation {
  static constexpr Index max_piggybacked_scalars = 16;  ///< doubles that travel with an operation

  ElementType type = ElementType::float32;         ///< of `data`
  void* data = nullptr;                            ///< first element
  Index count = 0;                                 ///< elements
  Reduction reduction = Reduction::sum;            ///< ignored by collectives that reduce nothing
  std::span<double> piggybacked_scalars = {};      ///< doubles that are sent with an all_reduce: always summed
  Collective collective = Collective::all_reduce;  ///< kind of the operation
  /// Input of reduce_scatter and all_gather. May be this rank's own range of the larger one of input and output.
  void const* in = nullptr;
  int root = 0;  ///< root rank of a broadcast
  /// Numbers of elements of each rank's part, for an all_gather of unequal parts; equal on all ranks. `count` is then
  /// unused, and the result is the concatenation of the parts.
  std::span<Index const> counts = {};
  double started_seconds = 0;   ///< time of Clock when `start` was called
  double finished_seconds = 0;  ///< time of Clock when the result was complete on this rank; 0 until then

  /// Returns whether this rank has the result.
  [[nodiscard]] bool complete() const noexcept { return finished_seconds > 0; }
};

}}}  // namespace lockstep::comm
