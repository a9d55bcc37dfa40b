// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <span>

#include <lockstep/core/element_type.hpp>
#include <lockstep/core/index.hpp>

namespace lockstep::inline LOCKSTEP_ABI::comm {

using lockstep::ElementType;

/// What becomes of the ranks' elements. Integers wrap.
enum class Operation : std::uint32_t {
  sum,          ///< in the balanced binary tree over ranks; of bfloat16 and float16 in float32, rounded once
  average,      ///< that sum, before it is rounded, divided by the number of ranks; not of integers
  max,          ///< nan where any rank has nan
  logical_or,   ///< 1 where any rank has something else than 0, else 0; of integers
  logical_and,  ///< 1 where all ranks have something else than 0, else 0; of integers
};

/// What a Piece does with the elements of n ranks.
enum class Collective : std::uint32_t {
  all_reduce,      ///< data[i] = the operation over all ranks' data[i]
  reduce_scatter,  ///< data[i] = the operation over all ranks' in[rank * count + i]; `in` has n * count elements
  all_gather,      ///< data[r * count + i] = in[i] of rank r; data has n * count elements
  broadcast,       ///< data[i] = data[i] of rank `root`
  barrier,         ///< complete when all ranks have started it
};

/// One collective operation: by default the sum of elements, in place, and of some doubles that ride with it. Either
/// may be empty. Given to `start`, a Piece and its memory stay where they are, unread and unwritten, until it is
/// complete.
struct Piece {
  static constexpr Index most_riders = 16;

  ElementType type = ElementType::float32;
  void* data = nullptr;
  Index count = 0;  ///< elements
  Operation operation = Operation::sum;
  std::span<double> rider = {};  ///< of an all_reduce: summed, whatever the operation
  Collective collective = Collective::all_reduce;
  /// The input of reduce_scatter and all_gather; may be this rank's own place in what is larger, input or output.
  void const* in = nullptr;
  int root = 0;  ///< of a broadcast
  /// Of an all_gather to which ranks give unequal parts: how many elements each gives, the same on all ranks. `count`
  /// is then not used, and parts lie one behind the other.
  std::span<Index const> counts = {};
  double started_seconds = 0;   ///< of Clock: when `start` was called
  double finished_seconds = 0;  ///< of Clock: when the result was complete on this rank; 0 until then

  [[nodiscard]] bool complete() const noexcept { return finished_seconds > 0; }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::comm
