// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <iterator>
#include <span>

#include <lockstep/comm/work.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm {

/// Copies the root's elements to all ranks: elements[i] = elements[i] of the root.
/// @shape elements, equal on all ranks
/// @determinism bitwise   @collective   @throws ConfigError if root is no rank
template <Communicator CommunicatorType, class Elements>
Work<CommunicatorType> broadcast(CommunicatorType& communicator, Elements&& elements, int root) {
  std::span const data(elements);
  using Value = typename decltype(data)::element_type;
  return Work<CommunicatorType>(communicator, {.type = element_type_of<Value>,
                                               .data = data.data(),
                                               .count = std::ssize(data),
                                               .collective = Collective::broadcast,
                                               .root = root});
}

}}}  // namespace lockstep::comm
