// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <iterator>
#include <span>
#include <type_traits>
#include <vector>

#include <lockstep/comm/operation.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/embedding/touched_rows.hpp>
#include <lockstep/parallel/detail/arena_ranges.hpp>
#include <lockstep/parallel/detail/block_squares.hpp>
#include <lockstep/parallel/detail/host_exchange.hpp>
#include <lockstep/parallel/detail/space_of.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

/// Assigns parts of the arena to ranks, and implements the collectives of a sharded optimizer: on the host, on devices
/// by a communicator for their memory, or on devices by a communicator of the host.
template <class Communicator, class DeviceReplica>
class OptimizerShards {
  using Space = typename DeviceReplica::Space;
  static constexpr bool in_place = std::is_same_v<typename SpaceOf<Communicator>::type, Space>;
  static constexpr bool on_device = in_place && !Space::host_accessible;
  using Squares = BlockSquares<Space>;

 public:
  using Norm = typename Squares::Norm;
  /// Copies to and from the host, for the third case.
  struct NoExchange {};
  using Exchange = std::conditional_t<in_place, NoExchange, HostExchange<Space>>;

  /// Splits the arena as gradient buckets are split, between tables, into parts of about `bucket` elements. With one
  /// rank, the rank owns all of it. All references must outlive this object.
  OptimizerShards(Communicator& communicator, DeviceReplica& replica, Exchange& exchange,
                  std::span<kernel::TouchedRows const> tables, int ranks, Index bucket)
      : communicator_(communicator),
        replica_(replica),
        exchange_(exchange),
        rank_(communicator.rank()),
        ranks_(ranks),
        squares_(replica.size()) {
    auto const add = [this](ArenaRange const& range) {
      ranges_.push_back(range);
      is_sharded_ = is_sharded_ || range.sharded;
    };
    split_arena(replica.size(), bucket, tables, ranks, add, block(replica.size()));
  }
  /// Returns the multiple of which parts are made, for an arena of `size` elements.
  [[nodiscard]] static Index block(Index size) noexcept { return Squares::block(size); }

  /// Returns whether other ranks update any part.
  [[nodiscard]] bool is_sharded() const noexcept { return is_sharded_; }
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

  /// Returns the norm of the replica's gradients. Each rank must have the sums of its own parts.
  /// @collective   @determinism bitwise, equal to the norm of the whole sum
  [[nodiscard]] Norm norm() {
    auto const stream = replica_.stream();
    TensorView<float const, 1, Space> const gradients{replica_.gradient_data(), {replica_.size()}};
    squares_.begin(stream);
    auto const sum = [&](Index begin, Index end) {
      if (begin < end) squares_.add(stream, gradients, replica_.touched(), begin, end);
    };
    Index begin = 0;  // start of the next range that all ranks have; rank 0 sums these
    for (auto const& range : ranges_) {
      if (!range.sharded) continue;
      auto const own = range.part(rank_, ranks_);
      if (rank_ == 0) sum(begin, range.begin);
      sum(own.begin, own.end);
      begin = range.end;
    }
    if (rank_ == 0) sum(begin, gradients.size());
    combine();
    return squares_.norm(stream);
  }

  /// All-gathers the ranks' parts in an arena of the replica's space.   @collective
  void gather(float* arena) {
    if constexpr (in_place) {
      list_operations(arena);
      start_all();
    } else {
      list_operations(exchange_.host());
      replica_.device().record(ready_);
      for (std::size_t i = 0; i < operations_.size(); ++i)
        exchange_.copy_to_host(i, ready_, Exchange::slice(arena, sharded_ranges_[i].part(rank_, ranks_)));
      exchange_.run(
          communicator_, operations_.size(),
          [this](std::size_t i) -> comm::CollectiveOperation& { return operations_[i]; },
          [&](std::size_t i) {
            return Exchange::slice(arena, {sharded_ranges_[i].begin, sharded_ranges_[i].end});
          },
          [] {});
      exchange_.end(replica_.stream());
    }
  }
  /// All-gathers the ranks' parts in the exchange's memory on the host.   @collective
  void gather_on_host() {
    list_operations(exchange_.host());
    start_all();
  }

 private:
  void list_operations(float* arena) {
    operations_.clear();
    sharded_ranges_.clear();
    for (auto const& range : ranges_) {
      if (!range.sharded) continue;
      auto const own = range.part(rank_, ranks_);
      sharded_ranges_.push_back(range);
      operations_.push_back({.data = arena + range.begin,
                             .count = own.end - own.begin,
                             .collective = comm::Collective::all_gather,
                             .in = arena + own.begin});
    }
  }
  /// Runs the operations on memory that is ready once the replica's stream has done its work so far.
  void start_all() {
    if constexpr (on_device) replica_.device().record(ready_);
    for (auto& operation : operations_) {
      if constexpr (on_device)
        communicator_.start_after(operation, ready_);
      else
        communicator_.start(operation);
    }
    communicator_.finish();
  }
  /// Adds up the ranks' sums of squares. One rank has the sum of a block, and all others have zero.
  void combine() {
    auto* sums = squares_.data();
    std::vector<double> on_host;
    if constexpr (!in_place) {
      on_host.resize(static_cast<std::size_t>(squares_.count()));
      replica_.device().copy_to_host(sums, on_host.data(), on_host.size() * sizeof(double));
      sums = on_host.data();
    }
    operations_.assign(1, {.type = ElementType::float64, .data = sums, .count = squares_.count()});
    start_all();
    if constexpr (!in_place)
      replica_.device().copy_from_host(on_host.data(), squares_.data(), on_host.size() * sizeof(double));
  }

  Communicator& communicator_;
  DeviceReplica& replica_;
  Exchange& exchange_;
  int rank_, ranks_;
  std::vector<ArenaRange> ranges_, sharded_ranges_;
  bool is_sharded_ = false;
  Squares squares_;
  std::vector<comm::CollectiveOperation> operations_;
  typename DeviceReplica::Event ready_;
};

}}}  // namespace lockstep::parallel::detail
