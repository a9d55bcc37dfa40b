// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/embedding/embedding_inputs.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Returns "row 4 of the batch", with the segment if there are several.
[[nodiscard]] inline std::string describe_row(Assembly<HostSpace> const& assembly, int segment, Index row) {
  return (assembly.count > 1 ? "segment " + std::to_string(segment) + " of " : "") + "row " + std::to_string(row) +
         " of the batch";
}

/// @throws DataError (at Contract::normal) if interleaved segments of a row are not equally long
inline void check_interleaved(Assembly<HostSpace> const& assembly) {
  if constexpr (!checks(Contract::normal)) return;
  if (assembly.arrangement != Arrangement::interleaved) return;
  for (int segment = 1; segment < assembly.count; ++segment)
    for (Index row = 0; row < assembly.segments[0].rows; ++row) {
      auto const first = assembly.segments[0].tokens(row), tokens = assembly.segments[segment].tokens(row);
      expect<DataError>(tokens == first, [&] {
        return "FusedEmbedding: " + describe_row(assembly, segment, row) + " has " + std::to_string(tokens) +
               " tokens and segment 0 has " + std::to_string(first) +
               ": interleaved segments are equally long; give each step one of each, or concatenate them";
      });
    }
}

/// Checks that ids [first, first + count) of a row are within their table. @throws RowError
inline void check_ids(Assembly<HostSpace> const& assembly, int segment, Index row, std::int32_t const* ids, Index count,
                      Index vocabulary, char const* table) {
  bool valid = true;  // one test per row: the loop has no branches
  for (Index t = 0; t < count; ++t)
    valid &= static_cast<std::uint32_t>(ids[t]) < static_cast<std::uint64_t>(vocabulary);
  for (Index t = 0; !valid && t < count; ++t)
    if (ids[t] < 0 || ids[t] >= vocabulary)
      throw RowError("FusedEmbedding: " + describe_row(assembly, segment, row) + " has id " + std::to_string(ids[t]) +
                         " at position " + std::to_string(t) + "; the table " +
                         (*table ? std::string(table) + " " : "") + "has " + std::to_string(vocabulary) +
                         " rows, ids are 0 to " + std::to_string(vocabulary - 1) +
                         ": use the vocabulary that the model was made for, or give the layer a larger `vocabulary`",
                     row);
}

/// @throws RowError (at Contract::normal) for an id outside its table or a sequence longer than the positions
template <class Scalar>
void check_embedding(EmbeddingInputs<Scalar, HostSpace> const& in) {
  if constexpr (!checks(Contract::normal)) return;
  auto const& assembly = in.assembly;
  for (int segment = 0; segment < assembly.count; ++segment) {
    auto const& layout = assembly.segments[segment];
    for (Index row = 0; row < layout.rows; ++row) {
      auto const tokens = layout.tokens(row), slots = layout.end(row) - layout.start(row);
      auto const counted = in.position_unit == PositionUnit::steps ? tokens : assembly.layout.tokens(row);
      auto const earlier = in.first_position ? in.first_position[row] : 0;
      auto const positions = in.position.data ? in.position.extent[0] : earlier + counted;
      if (tokens < 0 || tokens > slots)
        throw RowError("FusedEmbedding: " + describe_row(assembly, segment, row) + " has " + std::to_string(tokens) +
                           " tokens; lengths must be from 0 to the " + std::to_string(slots) + " slots of a row",
                       row);
      if (earlier + counted > positions)
        throw RowError(
            "FusedEmbedding: " +
                (counted == tokens ? describe_row(assembly, segment, row)
                                   : "all segments of row " + std::to_string(row) + " of the batch together") +
                " has " + std::to_string(counted) + " tokens" +
                (earlier > 0 ? " after " + std::to_string(earlier) + " earlier ones" : std::string()) + "; there are " +
                std::to_string(positions) + " positions: cut the sequence, or give the layer a larger `length`",
            row);
      for (int p = in.first_part[segment]; p < in.first_part[segment + 1]; ++p)
        if (auto const& part = in.parts[p]; part.is_table)
          check_ids(assembly, segment, row, part.ids + layout.start(row), tokens, part.rows.extent[0], part.name);
    }
  }
}

}}}  // namespace lockstep::kernel::detail
