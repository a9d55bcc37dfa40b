// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>

#include <lockstep/comm/detail/operation_sizes.hpp>
#include <lockstep/comm/operation.hpp>
#include <lockstep/core/mix.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm::detail {

/// A rank's operation as it is sent to the other ranks, which compare it with their own.
struct Descriptor {
  Collective collective;
  ElementType type;
  Reduction reduction;
  std::int32_t scalars;  // piggybacked
  std::int32_t root;
  std::uint32_t counts_hash;  // hash of the sizes of unequal parts, never 0; 0 for equal parts
  Index count;                // elements; with unequal parts, of all parts
  Index own_count;            // elements of this rank's part, with unequal parts
  Index address;              // offset of the rank's input in the segment; -1 if other ranks cannot reach it
  double started_seconds;
};

[[nodiscard]] inline Descriptor descriptor_of(CollectiveOperation const& operation, int rank,
                                              Index address = -1) noexcept {
  auto const collective = operation.collective;
  auto const count = collective == Collective::barrier ? 0 : operation.count;
  Descriptor d{collective,
               operation.type,
               reduces(collective) ? operation.reduction : Reduction::sum,
               static_cast<std::int32_t>(operation.piggybacked_scalars.size()),
               collective == Collective::broadcast ? operation.root : 0,
               0,
               count,
               count,
               address,
               operation.started_seconds};
  if (operation.counts.empty()) return d;
  d.count = 0;
  d.own_count = part_elements(operation, rank);
  std::uint64_t hash = 0;
  for (auto const n : operation.counts) {
    d.count += n;
    hash = mix(hash, static_cast<std::uint64_t>(n));
  }
  d.counts_hash = std::max<std::uint32_t>(1, static_cast<std::uint32_t>(hash >> 32));
  return d;
}

/// Returns whether two ranks request the same operation. Their memory may differ.
[[nodiscard]] inline bool matches(Descriptor const& a, Descriptor const& b) noexcept {
  return a.collective == b.collective && a.type == b.type && a.reduction == b.reduction && a.scalars == b.scalars &&
         a.root == b.root && a.count == b.count && a.counts_hash == b.counts_hash;
}

[[nodiscard]] inline char const* name(Reduction reduction) noexcept {
  switch (reduction) {
    case Reduction::sum:
      return "sum";
    case Reduction::average:
      return "average";
    case Reduction::max:
      return "max";
    case Reduction::logical_or:
      return "logical_or";
    case Reduction::logical_and:
      return "logical_and";
  }
  return "?";
}

/// Describes an operation: "all_reduce of 1000 float32 (sum, 3 piggybacked scalars)".
[[nodiscard]] inline std::string describe(Descriptor const& d) {
  auto const count = std::to_string(d.count) + " " + (d.type == ElementType::uint8 ? "bytes" : name(d.type));
  auto const reduction = std::string(" (") + name(d.reduction);
  switch (d.collective) {
    case Collective::all_reduce:
      return "all_reduce of " + count + reduction + ", " + std::to_string(d.scalars) +
             (d.scalars == 1 ? " piggybacked scalar)" : " piggybacked scalars)");
    case Collective::reduce_scatter:
      return "reduce_scatter of " + count + " per rank" + reduction + ")";
    case Collective::broadcast:
      return "broadcast of " + count + " from rank " + std::to_string(d.root);
    case Collective::all_gather:
      return "all_gather of " + count +
             (d.counts_hash == 0 ? " per rank" : " in parts, " + std::to_string(d.own_count) + " here");
    case Collective::barrier:
      return "barrier";
    case Collective::allocate:
      return "allocate of " + std::to_string(d.count) + " bytes";
  }
  return "?";
}

/// Returns the message of a CollectiveMismatch with all ranks that request another operation than this one, or an empty
/// string. `rank_name(r)` names a rank. `descriptor_of_rank(r)` returns its Descriptor, or null before the rank has
/// reached the operation.
template <class RankName, class DescriptorOfRank>
[[nodiscard]] std::string mismatch_message(std::string const& operation, int rank, int size, Descriptor const& mine,
                                           RankName const& rank_name, DescriptorOfRank const& descriptor_of_rank) {
  std::string others;
  for (int r = 0; r < size; ++r)
    if (Descriptor const* const other = descriptor_of_rank(r); other && !matches(mine, *other))
      others += "; " + rank_name(r) + " in " + describe(*other);
  if (others.empty()) return others;
  return "the ranks disagree in " + operation + ": " + rank_name(rank) + " is in " + describe(mine) + others +
         ". All ranks must call the same operations in the same order";
}

}}}  // namespace lockstep::comm::detail
