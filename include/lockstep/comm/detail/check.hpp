// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

#include <lockstep/comm/operation.hpp>
#include <lockstep/core/error.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm::detail {

/// Returns the number of elements in rank `rank`'s input, for a group of `ranks` ranks.
[[nodiscard]] inline Index input_count(Piece const& piece, int rank, int ranks) noexcept {
  if (piece.collective == Collective::barrier) return 0;
  if (piece.collective == Collective::reduce_scatter) return piece.count * ranks;
  return piece.counts.empty() ? piece.count : piece.counts[static_cast<std::size_t>(rank)];
}

inline void check_operation(Piece const& piece) {
  auto const refuse = [&](char const* what, char const* rule) {
    throw ConfigError(std::string("Communicator::start: ") + what + " of " + name(piece.type) + " elements: " + rule);
  };
  bool const whole =
      piece.type == ElementType::int32 || piece.type == ElementType::int64 || piece.type == ElementType::uint8;
  if (whole && piece.operation == Operation::average) refuse("the average", "sum them, then divide");
  if (!whole && (piece.operation == Operation::logical_or || piece.operation == Operation::logical_and))
    refuse("a logical operation", "it needs integers");
}

inline void check_memory(Piece const& piece, void const* data, Index count, char const* what) {
  if (count > 0 && data == nullptr)
    throw ConfigError(std::string("Communicator::start: the operation has elements but no memory (") + what +
                      " is null)");
  if (reinterpret_cast<std::uintptr_t>(data) % size_of(piece.type) != 0)
    throw ConfigError(std::string("Communicator::start: the operation's memory is not aligned for ") +
                      name(piece.type));
}

inline void check_counts(Piece const& piece, int ranks) {
  auto const refuse = [](std::string const& what) { throw ConfigError("Communicator::start: " + what); };
  if (piece.counts.empty()) return;
  if (piece.collective != Collective::all_gather) refuse("only the parts of an all_gather may be unequal");
  if (std::ssize(piece.counts) != ranks)
    refuse("counts has " + std::to_string(piece.counts.size()) + " entries; it needs one for each of " +
           std::to_string(ranks) + " ranks");
  for (auto const count : piece.counts)
    if (count < 0) refuse("a part has " + std::to_string(count) + " elements; it needs 0 or more");
}

/// Rejects operations that no engine can run, before another rank sees them. @throws ConfigError
inline void check(Piece const& piece, int rank = 0, int ranks = 1) {
  auto const refuse = [](std::string const& what) { throw ConfigError("Communicator::start: " + what); };
  if (piece.count < 0) refuse("the operation has " + std::to_string(piece.count) + " elements; it needs 0 or more");
  check_counts(piece, ranks);
  auto const given = input_count(piece, rank, ranks);
  bool const apart = piece.collective == Collective::reduce_scatter || piece.collective == Collective::all_gather;
  check_memory(piece, piece.data, piece.collective == Collective::barrier ? 0 : piece.count, "data");
  if (apart) check_memory(piece, piece.in, given, "in");
  if (piece.collective == Collective::all_reduce || piece.collective == Collective::reduce_scatter)
    check_operation(piece);
  if (piece.collective == Collective::broadcast && (piece.root < 0 || piece.root >= ranks))
    refuse("the root of a broadcast is " + std::to_string(piece.root) + "; ranks are 0 to " +
           std::to_string(ranks - 1));
  if (!piece.rider.empty() && piece.collective != Collective::all_reduce)
    refuse("only an all_reduce carries the doubles of `rider`");
  if (std::ssize(piece.rider) > Piece::most_riders)
    refuse("rider has " + std::to_string(piece.rider.size()) + " doubles; an operation carries at most " +
           std::to_string(Piece::most_riders));
}

}}}  // namespace lockstep::comm::detail
