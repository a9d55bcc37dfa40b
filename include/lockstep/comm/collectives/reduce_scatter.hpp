// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <iterator>
#include <span>
#include <string>
#include <type_traits>

#include <lockstep/comm/work.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm {

/// Reduces over all ranks and gives each rank its share:
/// out[i] = the reduction over all ranks' in[rank * out.size() + i].
/// @shape out, equal on all ranks   @shape in [ranks * out.size()]; `out` may be this rank's share of it
/// @determinism bitwise, equal to these elements of an all_reduce   @collective
/// @throws ShapeError if the sizes do not fit
template <Communicator CommunicatorType, class In, class Out>
Work<CommunicatorType> reduce_scatter(CommunicatorType& communicator, In const& in, Out&& out,
                                      Reduction reduction = Reduction::sum) {
  std::span const from(in);
  std::span const to(out);
  using Value = typename decltype(to)::element_type;
  static_assert(std::is_same_v<typename decltype(from)::value_type, Value>,
                "Lockstep: in and out have the same elements");
  if (std::ssize(from) != communicator.size() * std::ssize(to))
    throw ShapeError("comm::reduce_scatter: in has " + std::to_string(from.size()) + " elements; it needs " +
                     std::to_string(communicator.size()) + " times the " + std::to_string(to.size()) + " of out");
  return Work<CommunicatorType>(communicator, {.type = element_type_of<Value>,
                                               .data = to.data(),
                                               .count = std::ssize(to),
                                               .reduction = reduction,
                                               .collective = Collective::reduce_scatter,
                                               .in = from.data()});
}

}}}  // namespace lockstep::comm
