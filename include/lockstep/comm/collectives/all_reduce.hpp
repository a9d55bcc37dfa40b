// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>

#include <lockstep/comm/work.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm {

/// Reduces elements over all ranks, in place: elements[i] = the reduction over all ranks' elements[i].
/// Call `comm::all_reduce(c, x).wait()` to wait for the result.
/// @shape elements, equal on all ranks
/// @determinism bitwise, see Communicator   @collective
template <Communicator CommunicatorType, class Elements>
Work<CommunicatorType> all_reduce(CommunicatorType& communicator, Elements&& elements,
                                  Reduction reduction = Reduction::sum) {
  std::span const data(elements);
  using Value = typename decltype(data)::element_type;
  return Work<CommunicatorType>(
      communicator,
      {.type = element_type_of<Value>, .data = data.data(), .count = std::ssize(data), .reduction = reduction});
}

}}}  // namespace lockstep::comm
