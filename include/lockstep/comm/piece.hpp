// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <span>

#include <lockstep/core/element_type.hpp>
#include <lockstep/core/index.hpp>

namespace lockstep::inline LOCKSTEP_ABI::comm {

using lockstep::ElementType;

/// What becomes of the ranks' elements.
enum class Operation : std::uint32_t {
  sum,  ///< in the balanced binary tree over ranks
  max,  ///< nan where any rank has nan
};

/// One all-reduce: a view of elements, and some doubles that ride with it and are summed, whatever the operation.
/// Either may be empty. Given to `start`, a Piece and its memory stay where they are, unread and unwritten, until
/// `finish` returns.
struct Piece {
  static constexpr Index most_riders = 16;

  ElementType type = ElementType::float32;
  void* data = nullptr;
  Index count = 0;  ///< elements
  Operation operation = Operation::sum;
  std::span<double> rider = {};
  double started_seconds = 0;   ///< of Clock: when `start` was called
  double finished_seconds = 0;  ///< of Clock: when the result was complete on this rank
};

}  // namespace lockstep::inline LOCKSTEP_ABI::comm
