// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include <lockstep/comm/operation.hpp>
#include <lockstep/core/clock.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/embedding/touched_rows.hpp>
#include <lockstep/kernel/reduction/sum_of_squares.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/parallel/detail/arena_ranges.hpp>
#include <lockstep/parallel/detail/gradient_wire.hpp>
#include <lockstep/parallel/policy.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel {

/// Splits the gradient arena into buckets that are summed over ranks as soon as they are full, in arena order on every
/// rank. The first bucket has a quarter of the size, so that it starts early. At the end buckets shrink to a quarter,
/// since no computation hides the last one. Loss, weight and the number of ranks that request a stop are piggybacked on
/// the first bucket. There is always one bucket.
class GradientBuckets {
 public:
  /// @param tables tables in the arena's order, without buckets: RowExchange sums their rows
  /// @param rank, ranks for a sharded optimizer: `rank` gets its parts of the sums of `ranks` ranks
  GradientBuckets(std::span<float> arena, std::size_t bucket_bytes, std::span<kernel::TouchedRows const> tables = {},
                  int rank = 0, int ranks = 1);
  /// Splits an arena of `size` elements into buckets of about `bucket` elements that are summed in the memory
  /// that `wire` selects.
  /// @param block multiple of which the parts of several ranks are made
  template <class Wire>
  GradientBuckets(Wire const& wire, Index size, Index bucket, std::span<kernel::TouchedRows const> tables, int rank,
                  int ranks, Index block = kernel::SumOfSquares<HostSpace>::block) {
    auto const add = [&](detail::ArenaRange const& range) {
      if (range.of_table) return;
      auto const own = range.part(rank, ranks);
      comm::CollectiveOperation operation{
          .type = wire.type(), .data = wire.at(own.begin), .count = own.end - own.begin};
      if (range.sharded) {
        operation.collective = comm::Collective::reduce_scatter;
        operation.in = wire.at(range.begin);
      }
      buckets_.push_back({operation, range.begin, range.end, own, 0, 0});
    };
    detail::split_arena(size, bucket, tables, ranks, add, block);
    buckets_[0].operation.piggybacked_scalars = scalars_;
  }
  // Not copied: the first bucket points into this object.
  GradientBuckets(GradientBuckets const&) = delete;
  GradientBuckets& operator=(GradientBuckets const&) = delete;

  /// Returns the piggybacked doubles: set before backward, summed over ranks after `finish`.
  [[nodiscard]] std::span<double, 3> piggybacked_scalars() noexcept { return scalars_; }

  /// Returns the number of elements of the next bucket, for buckets of `full` elements and `rest` remaining ones.
  [[nodiscard]] static Index next_length(Index full, Index rest, bool first) noexcept;

  /// Marks all buckets as incomplete.
  /// @throws CommunicationError if an exception ended the previous step before its sums were complete
  void begin_step();

  /// Returns the number of buckets of the whole arena.
  [[nodiscard]] std::size_t size() const noexcept { return buckets_.size(); }
  /// Returns how many buckets have been started.
  [[nodiscard]] std::size_t started() const noexcept { return next_; }
  /// Returns bucket i's range of the arena, in elements.
  [[nodiscard]] detail::ArenaPart range_of(std::size_t i) const noexcept;
  /// Returns the range of bucket i whose sum this rank gets: all of it, or a part with a sharded optimizer.
  [[nodiscard]] detail::ArenaPart own_range_of(std::size_t i) const noexcept { return buckets_[i].own; }
  /// Returns bucket i's operation, for a caller that starts it later than `fill` reported it. It is ready at `now`.
  [[nodiscard]] comm::CollectiveOperation& ready_operation(std::size_t i, double now) noexcept;
  /// Returns bucket i's operation, with its times in the last step.
  [[nodiscard]] comm::CollectiveOperation const& operation(std::size_t i) const noexcept;

  /// Marks the gradient of the parameter at `offset` as complete. Starts every full bucket whose predecessors have
  /// started, rounded by `wire`.
  template <class Communicator, class Wire = detail::InPlace>
  void ready(Communicator& communicator, Index offset, Index count, Wire const& wire = {}) {
    auto const now = Clock::seconds();
    fill(offset, count, now, [&](std::size_t i, comm::CollectiveOperation& operation) {
      wire.round(range_of(i));
      communicator.start(operation);
      in_progress_ = true;
    });
    communicator.progress();
    in_backward_ += Clock::seconds() - now;
  }
  /// Does the same at the time `now`, with start(number, operation) as the function that starts a bucket.
  template <class Start>
  void fill(Index offset, Index count, double now, Start const& start) {
    auto const end = offset + nn::ParameterLayout::padded(count);
    auto bucket = std::find_if(buckets_.begin(), buckets_.end(), [=](Bucket const& b) { return b.end > offset; });
    for (; bucket != buckets_.end() && bucket->begin < end; ++bucket) {
      bucket->pending -= std::min(end, bucket->end) - std::max(offset, bucket->begin);
      if (bucket->pending == 0) bucket->ready = now;
    }
    for (; next_ < buckets_.size() && buckets_[next_].pending == 0; ++next_) {
      if (buckets_[next_].begin == buckets_[next_].end) buckets_[next_].ready = now;
      start(next_, buckets_[next_].operation);
    }
  }

  /// Starts the remaining buckets, which have unused parameters, and waits for all sums. Converts rounded sums to
  /// float32 in the arena, each as soon as it is complete.
  template <class Communicator, class Wire = detail::InPlace>
  void finish(Communicator& communicator, Wire const& wire = {}) {
    in_progress_ = false;
    start_remaining([&](std::size_t i, comm::CollectiveOperation& operation) {
      wire.round(range_of(i));
      communicator.start(operation);
    });
    for (std::size_t i = 0; wire.rounds() && i < size(); ++i) {
      communicator.wait(buckets_[i].operation);
      wire.widen(own_range_of(i));
    }
    communicator.finish();
  }
  /// Starts the remaining buckets by start(number, operation).
  template <class Start>
  void start_remaining(Start const& start) {
    for (; next_ < buckets_.size(); ++next_) {
      auto& bucket = buckets_[next_];
      if (bucket.pending > 0 || bucket.begin == bucket.end) bucket.ready = Clock::seconds();
      start(next_, bucket.operation);
    }
  }

  /// Returns one entry per bucket, for the last step, with sizes as sent.
  [[nodiscard]] std::vector<BucketTimes> times() const;
  /// Appends the entries of times() to `times`.
  void add_times(std::vector<BucketTimes>& times) const;
  /// Returns the seconds that communication took inside backward since the last call.
  [[nodiscard]] double take_seconds_in_backward() noexcept { return std::exchange(in_backward_, 0); }

 private:
  struct Bucket {
    comm::CollectiveOperation operation;
    Index begin, end;  // elements of the arena
    detail::ArenaPart own;
    Index pending;  // elements that are not yet ready
    double ready;
  };

  std::vector<Bucket> buckets_;
  std::array<double, 3> scalars_{};
  std::size_t next_ = 0;  // bucket to start next
  double in_backward_ = 0;
  bool in_progress_ = false;  // incomplete sums of a step whose `finish` has not been called
};

}}}  // namespace lockstep::parallel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/parallel/gradients/gradient_buckets.ipp>
#endif
