// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <lockstep/comm/detail/rank_block.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm::detail {

[[nodiscard]] inline char const* name(Operation operation) noexcept {
  switch (operation) {
    case Operation::sum:
      return "sum";
    case Operation::average:
      return "average";
    case Operation::max:
      return "max";
    case Operation::logical_or:
      return "logical_or";
    case Operation::logical_and:
      return "logical_and";
  }
  return "?";
}

/// Describes an operation: "all_reduce of 1000 float32 (sum, 3 riders)".
[[nodiscard]] inline std::string describe(Descriptor const& d) {
  auto const count = std::to_string(d.count) + " " + (d.type == ElementType::uint8 ? "bytes" : name(d.type));
  auto const operation = std::string(" (") + name(d.operation);
  switch (d.kind) {
    case Kind::all_reduce:
      return "all_reduce of " + count + operation + ", " + std::to_string(d.riders) +
             (d.riders == 1 ? " piggybacked scalar)" : " piggybacked scalars)");
    case Kind::reduce_scatter:
      return "reduce_scatter of " + count + " per rank" + operation + ")";
    case Kind::broadcast:
      return "broadcast of " + count + " from rank " + std::to_string(d.root);
    case Kind::all_gather:
      return "all_gather of " + count + (d.parts == 0 ? " per rank" : " in parts, " + std::to_string(d.own) + " here");
    case Kind::barrier:
      return "barrier";
    case Kind::allocate:
      return "allocate of " + std::to_string(d.count) + " bytes";
  }
  return "?";
}

/// Returns whether two ranks request the same operation. Their memory may differ.
[[nodiscard]] inline bool same(Descriptor const& a, Descriptor const& b) noexcept {
  return a.kind == b.kind && a.type == b.type && a.operation == b.operation && a.riders == b.riders &&
         a.root == b.root && a.count == b.count && a.parts == b.parts;
}

/// Returns the message of a CollectiveMismatch with all ranks that request another operation than this one, or an empty
/// string. `who(r)` names a rank. `theirs(r)` returns its Descriptor, or null before the rank has reached the
/// operation.
template <class Who, class Theirs>
[[nodiscard]] std::string disagreement(std::string const& operation, int rank, int size, Descriptor const& mine,
                                       Who const& who, Theirs const& theirs) {
  std::string others;
  for (int r = 0; r < size; ++r)
    if (Descriptor const* const other = theirs(r); other && !same(mine, *other))
      others += "; " + who(r) + " in " + describe(*other);
  if (others.empty()) return others;
  return "the ranks disagree in " + operation + ": " + who(rank) + " is in " + describe(mine) + others +
         ". All ranks must call the same operations in the same order";
}

}}}  // namespace lockstep::comm::detail
