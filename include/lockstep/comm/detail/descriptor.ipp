// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/comm/detail/descriptor.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm::detail {

LOCKSTEP_INLINE Descriptor descriptor_of(CollectiveOperation const& operation, int rank, Index address) noexcept {
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

LOCKSTEP_INLINE bool is_valid(Descriptor const& d) noexcept {
  return d.collective <= Collective::allocate && d.type <= ElementType::uint8 && d.reduction <= Reduction::logical_and;
}

LOCKSTEP_INLINE bool matches(Descriptor const& a, Descriptor const& b) noexcept {
  return a.collective == b.collective && a.type == b.type && a.reduction == b.reduction && a.scalars == b.scalars &&
         a.root == b.root && a.count == b.count && a.counts_hash == b.counts_hash;
}

LOCKSTEP_INLINE char const* name(Reduction reduction) noexcept {
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

LOCKSTEP_INLINE std::string describe(Descriptor const& d) {
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

}}}  // namespace lockstep::comm::detail
