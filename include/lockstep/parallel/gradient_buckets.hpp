// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include <lockstep/comm/piece.hpp>
#include <lockstep/core/clock.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/touched_rows.hpp>
#include <lockstep/nn/parameter_layout.hpp>
#include <lockstep/parallel/detail/arena_ranges.hpp>
#include <lockstep/parallel/detail/gradient_wire.hpp>
#include <lockstep/parallel/policy.hpp>

namespace lockstep::inline LOCKSTEP_ABI::parallel {

/// The gradient arena as byte ranges that leave for their sum over ranks as soon as they are full, strictly in arena
/// order on every rank. The first has a quarter of the size, so that it leaves early; at the end they shrink to a
/// quarter, as nothing hides the last one. Numbers that must be summed too (loss, weight, and how many ranks ask that
/// training ends) ride with the first bucket: there is always one.
class GradientBuckets {
 public:
  /// `tables`, in the arena's order, stay out: their rows are summed by RowExchange.
  /// Of `ranks` to which buckets are dealt this one, `rank`, gets its parts of the sums.
  GradientBuckets(std::span<float> arena, std::size_t bucket_bytes, std::span<kernel::TouchedRows const> tables = {},
                  int rank = 0, int ranks = 1)
      : GradientBuckets(detail::InPlace{arena.data()}, std::ssize(arena),
                        static_cast<Index>(bucket_bytes / sizeof(float)), tables, rank, ranks) {}
  /// The same of an arena of `size` elements that is summed where `wire` says, in buckets of about `bucket` elements.
  template <class Wire>
  GradientBuckets(Wire const& wire, Index size, Index bucket, std::span<kernel::TouchedRows const> tables, int rank,
                  int ranks) {
    detail::cut_arena(size, bucket, tables, ranks, [&](detail::ArenaRange const& range) {
      if (range.of_table) return;
      auto const own = range.part(rank, ranks);
      comm::Piece piece{.type = wire.type(), .data = wire.at(own.begin), .count = own.end - own.begin};
      if (range.dealt) {
        piece.collective = comm::Collective::reduce_scatter;
        piece.in = wire.at(range.begin);
      }
      buckets_.push_back({piece, range.begin, range.end, own, 0, 0});
    });
    buckets_[0].piece.rider = rider_;
  }
  // The first bucket points into this object.
  GradientBuckets(GradientBuckets const&) = delete;
  GradientBuckets& operator=(GradientBuckets const&) = delete;

  /// Written before backward, summed over ranks after `finish`.
  [[nodiscard]] std::span<double, 3> rider() noexcept { return rider_; }

  /// Elements of the next bucket when `rest` are left, with buckets of `full`.
  [[nodiscard]] static Index next_length(Index full, Index rest, bool first) noexcept {
    return detail::next_length(full, rest, first);
  }

  /// @throws CommunicationError when the step before was left, by an exception, while sums were under way
  void begin_step() {
    if (under_way_)
      throw CommunicationError(
          "DistributedDataParallel: an exception ended a step before while its gradients were on their way to other "
          "ranks, which may have gone on without it: this trainer cannot; let such an exception end the rank");
    next_ = 0;
    for (auto& bucket : buckets_) bucket.pending = bucket.end - bucket.begin;
  }

  [[nodiscard]] std::size_t size() const noexcept { return buckets_.size(); }
  /// How many of them have been started.
  [[nodiscard]] std::size_t started() const noexcept { return next_; }
  /// What bucket i has of the arena, and what this rank gets of its sum.
  [[nodiscard]] detail::ArenaPart all_of(std::size_t i) const noexcept { return {buckets_[i].begin, buckets_[i].end}; }
  [[nodiscard]] detail::ArenaPart own_of(std::size_t i) const noexcept { return buckets_[i].own; }

  /// The gradient of the parameter at `offset` is complete: starts every bucket that is full and whose turn it is,
  /// rounded as `wire` says.
  template <class Communicator, class Wire = detail::InPlace>
  void ready(Communicator& communicator, Index offset, Index count, Wire const& wire = {}) {
    auto const now = Clock::seconds();
    fill(offset, count, now, [&](std::size_t i, comm::Piece& piece) {
      wire.round(all_of(i));
      communicator.start(piece);
      under_way_ = true;
    });
    communicator.progress();
    in_backward_ += Clock::seconds() - now;
  }
  /// The same at the time `now`, by start(number, piece).
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
      start(next_, buckets_[next_].piece);
    }
  }

  /// Starts what is left (buckets with parameters that nobody used) and waits for all sums. Those that were rounded are
  /// back in the arena, each as soon as it is complete.
  template <class Communicator, class Wire = detail::InPlace>
  void finish(Communicator& communicator, Wire const& wire = {}) {
    under_way_ = false;
    start_rest([&](std::size_t i, comm::Piece& piece) {
      wire.round(all_of(i));
      communicator.start(piece);
    });
    for (std::size_t i = 0; wire.rounds() && i < size(); ++i) {
      communicator.wait(buckets_[i].piece);
      wire.widen(own_of(i));
    }
    communicator.finish();
  }
  /// Starts what is left, by start(number, piece).
  template <class Start>
  void start_rest(Start const& start) {
    for (; next_ < buckets_.size(); ++next_) {
      auto& bucket = buckets_[next_];
      if (bucket.pending > 0 || bucket.begin == bucket.end) bucket.ready = Clock::seconds();
      start(next_, bucket.piece);
    }
  }

  /// One entry per bucket, of the last step, in bytes as they were sent.
  [[nodiscard]] std::vector<BucketTimes> times() const {
    std::vector<BucketTimes> times;
    add_times(times);
    return times;
  }
  void add_times(std::vector<BucketTimes>& times) const {
    for (auto const& bucket : buckets_)
      times.push_back({static_cast<std::size_t>(bucket.end - bucket.begin) * size_of(bucket.piece.type), bucket.ready,
                       bucket.piece.started_seconds, bucket.piece.finished_seconds});
  }
  /// Seconds that communication took out of backward since the last call.
  [[nodiscard]] double take_seconds_in_backward() noexcept { return std::exchange(in_backward_, 0); }

 private:
  struct Bucket {
    comm::Piece piece;
    Index begin, end;  // elements of the arena
    detail::ArenaPart own;
    Index pending;  // of them, not yet ready
    double ready;
  };

  std::vector<Bucket> buckets_;
  std::array<double, 3> rider_{};
  std::size_t next_ = 0;  // bucket to start
  double in_backward_ = 0;
  bool under_way_ = false;  // sums of a step that nobody has asked for yet
};

}  // namespace lockstep::inline LOCKSTEP_ABI::parallel
