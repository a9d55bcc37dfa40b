// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <iterator>
#include <span>
#include <vector>

#include <lockstep/comm/piece.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/sum_of_squares.hpp>
#include <lockstep/kernel/touched_rows.hpp>
#include <lockstep/memory/stream.hpp>
#include <lockstep/optim/global_norm.hpp>
#include <lockstep/parallel/detail/arena_ranges.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

/// Assigns parts of the arena to ranks, and implements the collectives of a sharded optimizer.
template <class Communicator>
class OptimizerShards {
 public:
  /// Splits the arena as gradient buckets are split, into parts of about `bucket` elements. With one rank, the rank
  /// owns all of it.
  OptimizerShards(Communicator& communicator, int ranks, Index size, Index bucket,
                  std::span<kernel::TouchedRows const> tables)
      : communicator_(communicator), rank_(communicator.rank()), ranks_(ranks) {
    cut_arena(size, bucket, tables, ranks, [this](ArenaRange const& range) {
      ranges_.push_back(range);
      deals_ = deals_ || range.dealt;
    });
  }

  /// Returns whether other ranks update any part.
  [[nodiscard]] bool deals() const noexcept { return deals_; }
  /// Returns the parts that this rank updates, in order.
  [[nodiscard]] std::vector<ArenaPart> parts() const {
    std::vector<ArenaPart> parts;
    for (auto const& range : ranges_) {
      auto const part = range.part(rank_, ranks_);
      if (!parts.empty() && parts.back().end == part.begin)
        parts.back().end = part.end;
      else
        parts.push_back(part);
    }
    return parts;
  }

  /// Returns the gradient norm. Each rank must have the sums of its own parts.
  /// @shape gradients, the arena   @collective   @determinism bitwise, equal to GlobalNorm::of the whole sum
  [[nodiscard]] optim::GlobalNorm norm(memory::Stream<HostSpace> stream,
                                       TensorView<float const, 1, HostSpace> gradients,
                                       std::span<kernel::TouchedRows const> tables) {
    using Squares = kernel::SumOfSquares<HostSpace>;
    squares_.assign(static_cast<std::size_t>(Squares::blocks_of(gradients.size())), 0.0);
    auto const sum = [&](Index begin, Index end) {
      Squares::run_blocks<float>(stream, gradients, tables, begin / Squares::block, Squares::blocks_of(end),
                                 squares_.data());
    };
    Index begin = 0;  // start of the next range that all ranks have; rank 0 sums these
    for (auto const& range : ranges_) {
      if (!range.dealt) continue;
      auto const own = range.part(rank_, ranks_);
      if (rank_ == 0) sum(begin, range.begin);
      sum(own.begin, own.end);
      begin = range.end;
    }
    if (rank_ == 0) sum(begin, gradients.size());
    comm::Piece piece{
        .type = ElementType::float64, .data = squares_.data(), .count = std::ssize(squares_)};  // zeros for other parts
    communicator_.start(piece);
    communicator_.finish();
    return {Squares::total(squares_)};
  }

  /// All-gathers the ranks' parts in any arena of the layout.   @collective
  void gather(float* arena) {
    pieces_.clear();
    for (auto const& range : ranges_) {
      if (!range.dealt) continue;
      auto const own = range.part(rank_, ranks_);
      pieces_.push_back({.data = arena + range.begin,
                         .count = own.end - own.begin,
                         .collective = comm::Collective::all_gather,
                         .in = arena + own.begin});
    }
    for (auto& piece : pieces_) communicator_.start(piece);
    communicator_.finish();
  }

 private:
  Communicator& communicator_;
  int rank_, ranks_;
  std::vector<ArenaRange> ranges_;
  bool deals_ = false;
  std::vector<double> squares_;  // sum of squares of each block of the gradients
  std::vector<comm::Piece> pieces_;
};

}}}  // namespace lockstep::parallel::detail
