// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <iterator>
#include <span>
#include <string>
#include <type_traits>

#include <lockstep/comm/work.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm {

/// Concatenates the `in` of all ranks in `out`, in rank order.
/// @shape in [counts[rank]]; without `counts` equal on all ranks   @shape out [sum over all ranks]; may contain `in`
/// @shape counts [ranks], equal on all ranks; must live until the operation is complete
/// @determinism bitwise   @collective   @throws ShapeError if the sizes do not fit
template <Communicator CommunicatorType, class In, class Out>
Work<CommunicatorType> all_gather(CommunicatorType& communicator, In const& in, Out&& out,
                                  std::span<Index const> counts = {}) {
  std::span const from(in);
  std::span const to(out);
  using Value = typename decltype(to)::element_type;
  static_assert(std::is_same_v<typename decltype(from)::value_type, Value>,
                "Lockstep: in and out have the same elements");
  Index all = counts.empty() ? communicator.size() * std::ssize(from) : 0;
  for (auto const count : counts) all += count;
  auto const rank = static_cast<std::size_t>(communicator.rank());
  if (all != std::ssize(to) || (rank < counts.size() && counts[rank] != std::ssize(from)))
    throw ShapeError("comm::all_gather: rank " + std::to_string(rank) + " gives " + std::to_string(from.size()) +
                     " elements and has room for " + std::to_string(to.size()) + "; all ranks together give " +
                     std::to_string(all));
  return Work<CommunicatorType>(communicator, {.type = element_type_of<Value>,
                                               .data = to.data(),
                                               .count = std::ssize(from),
                                               .collective = Collective::all_gather,
                                               .in = from.data(),
                                               .counts = counts});
}

}}}  // namespace lockstep::comm
