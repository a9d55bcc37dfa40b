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

[[nodiscard]] Descriptor descriptor_of(CollectiveOperation const& operation, int rank, Index address = -1) noexcept;

/// Returns whether the bytes of another rank are a descriptor: its enumerations have known values.
[[nodiscard]] bool is_valid(Descriptor const& d) noexcept;

/// Returns whether two ranks request the same operation. Their memory may differ.
[[nodiscard]] bool matches(Descriptor const& a, Descriptor const& b) noexcept;

[[nodiscard]] char const* name(Reduction reduction) noexcept;

/// Describes an operation: "all_reduce of 1000 float32 (sum, 3 piggybacked scalars)".
[[nodiscard]] std::string describe(Descriptor const& d);

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

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/comm/detail/descriptor.ipp>
#endif
