// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>

#include <lockstep/comm/detail/rank_block.hpp>
#include <lockstep/comm/operation.hpp>
#include <lockstep/core/mix.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm::detail {

/// A collective operation that a rank has requested.
struct Request {
  Kind kind = Kind::barrier;
  ElementType type = ElementType::uint8;
  Operation operation = Operation::sum;
  Index count = 0;
  int root = 0;
  void const* in = nullptr;
  void* out = nullptr;
  std::span<Index const> counts = {};
  std::span<double> rider = {};
  Piece* piece = nullptr;
  double started_seconds = 0;
  Index address = -1;      // offset of the input in the segment, for other ranks
  bool copied = false;     // a copy in the slot replaces the memory
  bool needs_all = false;  // others work on this rank's memory or its copy: complete once they are done

  [[nodiscard]] Index element_bytes() const noexcept { return static_cast<Index>(size_of(type)); }
  /// Returns the number of elements that belong to one rank, in its result or its input.
  [[nodiscard]] Index part(int rank) const noexcept {
    if (kind == Kind::barrier || kind == Kind::allocate) return 0;
    return counts.empty() ? count : counts[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] Index largest_part() const noexcept {
    return counts.empty() ? part(0) : *std::max_element(counts.begin(), counts.end());
  }
  /// Returns the number of parts in an input.
  [[nodiscard]] Index parts(int ranks) const noexcept { return kind == Kind::reduce_scatter ? ranks : 1; }
  /// Returns the number of bytes that a rank gives to the others.
  [[nodiscard]] Index bytes(int rank, int ranks) const noexcept {
    return kind == Kind::broadcast && rank != root ? 0 : part(rank) * parts(ranks) * element_bytes();
  }
  /// Returns whether every rank's input fits into its slot. Equal on all ranks.
  [[nodiscard]] bool small(int ranks) const noexcept {
    return largest_part() * parts(ranks) * element_bytes() <= static_cast<Index>(Slot::small_bytes);
  }
  [[nodiscard]] Descriptor descriptor(int rank) const noexcept {
    bool const computes = kind == Kind::all_reduce || kind == Kind::reduce_scatter;
    Descriptor d{kind,
                 type,
                 computes ? operation : Operation::sum,
                 static_cast<std::int32_t>(rider.size()),
                 kind == Kind::broadcast ? root : 0,
                 0,
                 count,
                 count,
                 address,
                 started_seconds};
    if (counts.empty()) return d;
    d.count = 0;
    d.own = part(rank);
    std::uint64_t hash = 0;
    for (auto const n : counts) {
      d.count += n;
      hash = mix(hash, static_cast<std::uint64_t>(n));
    }
    d.parts = std::max<std::uint32_t>(1, static_cast<std::uint32_t>(hash >> 32));
    return d;
  }
};

/// Returns the request of an operation.
[[nodiscard]] inline Request request_of(Piece& piece, double started_seconds) noexcept {
  bool const apart = piece.collective == Collective::reduce_scatter || piece.collective == Collective::all_gather;
  return {.kind = static_cast<Kind>(piece.collective),
          .type = piece.type,
          .operation = piece.operation,
          .count = piece.collective == Collective::barrier ? 0 : piece.count,
          .root = piece.root,
          .in = apart ? piece.in : piece.data,
          .out = piece.data,
          .counts = piece.counts,
          .rider = piece.rider,
          .piece = &piece,
          .started_seconds = started_seconds};
}

}}}  // namespace lockstep::comm::detail
