// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

#include <lockstep/comm/piece.hpp>
#include <lockstep/core/error.hpp>

namespace lockstep::inline LOCKSTEP_ABI::comm::detail {

/// Refuses what no engine could do, before any other rank hears of it.
inline void check(Piece const& piece) {
  auto const refuse = [](std::string const& what) { throw ConfigError("Communicator::start: " + what); };
  if (piece.count < 0) refuse("the piece has " + std::to_string(piece.count) + " elements; it needs 0 or more");
  if (piece.count > 0 && piece.data == nullptr) refuse("the piece has elements and no memory (data is null)");
  if (reinterpret_cast<std::uintptr_t>(piece.data) % size_of(piece.type) != 0)
    refuse(std::string("the piece's memory is not aligned for ") + name(piece.type));
  if (std::ssize(piece.rider) > Piece::most_riders)
    refuse(std::to_string(piece.rider.size()) + " doubles ride with the piece; at most " +
           std::to_string(Piece::most_riders) + " can");
}

inline void check_root(int root, int size) {
  if (root < 0 || root >= size)
    throw ConfigError("Communicator::broadcast: root is " + std::to_string(root) + "; ranks are 0 to " +
                      std::to_string(size - 1));
}

}  // namespace lockstep::inline LOCKSTEP_ABI::comm::detail
