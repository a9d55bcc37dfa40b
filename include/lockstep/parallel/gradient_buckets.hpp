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
#include <lockstep/kernel/touched_rows.hpp>
#include <lockstep/nn/parameter_layout.hpp>
#include <lockstep/parallel/policy.hpp>

namespace lockstep::inline LOCKSTEP_ABI::parallel {

/// The gradient arena as byte ranges that leave for their sum over ranks as soon as they are full, strictly in arena
/// order on every rank. The first has a quarter of the size, so that it leaves early; at the end they shrink to a
/// quarter, as nothing hides the last one. Numbers that must be summed too (loss, weight, and how many ranks ask that
/// training ends) ride with the first bucket: there is always one.
class GradientBuckets {
 public:
  /// `tables`, in the arena's order, stay out: their rows are summed by RowExchange.
  GradientBuckets(std::span<float> arena, std::size_t bucket_bytes, std::span<kernel::TouchedRows const> tables = {}) {
    auto const full = std::max<Index>(nn::ParameterLayout::alignment, static_cast<Index>(bucket_bytes / sizeof(float)));
    auto const add = [&](Index begin, Index end) {
      buckets_.push_back(
          {{ElementType::float32, arena.data() + begin, end - begin, comm::Operation::sum, {}}, begin, end, 0, 0});
    };
    Index begin = 0;
    auto const cut_until = [&](Index end) {
      for (Index next; begin < end; begin = next) {
        next = std::min(end, begin + next_length(full, std::ssize(arena) - begin, buckets_.empty()));
        add(begin, next);
      }
    };
    for (auto const& table : tables) {
      cut_until(table.offset);
      begin = table.offset + nn::ParameterLayout::padded(table.rows * table.width);
    }
    cut_until(static_cast<Index>(arena.size()));
    if (buckets_.empty()) add(0, 0);
    buckets_[0].piece.rider = rider_;
  }
  // The first bucket points into this object.
  GradientBuckets(GradientBuckets const&) = delete;
  GradientBuckets& operator=(GradientBuckets const&) = delete;

  /// Written before backward, summed over ranks after `finish`.
  [[nodiscard]] std::span<double, 3> rider() noexcept { return rider_; }

  /// Elements of the next bucket when `rest` are left, with buckets of `full`.
  [[nodiscard]] static Index next_length(Index full, Index rest, bool first) noexcept {
    auto const aligned = [](Index count) {
      return count / nn::ParameterLayout::alignment * nn::ParameterLayout::alignment;
    };
    auto const least = std::max(aligned(full / 4), nn::ParameterLayout::alignment);
    if (first) return std::min(rest, least);
    return rest < least + least / 2 ? rest : std::clamp(aligned(rest / 2), least, full);
  }

  void begin_step() noexcept {
    next_ = 0;
    for (auto& bucket : buckets_) bucket.pending = bucket.end - bucket.begin;
  }

  [[nodiscard]] std::size_t size() const noexcept { return buckets_.size(); }

  /// The gradient of the parameter at `offset` is complete: starts every bucket that is full and whose turn it is.
  template <class Communicator>
  void ready(Communicator& communicator, Index offset, Index count) {
    auto const now = Clock::seconds();
    fill(offset, count, now, [&](std::size_t, comm::Piece& piece) { communicator.start(piece); });
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
    for (; next_ < buckets_.size() && buckets_[next_].pending == 0; ++next_) start(next_, buckets_[next_].piece);
  }

  /// Starts what is left (buckets with parameters that nobody used) and waits for all sums.
  template <class Communicator>
  void finish(Communicator& communicator) {
    start_rest([&](std::size_t, comm::Piece& piece) { communicator.start(piece); });
    communicator.finish();
  }
  /// Starts what is left, by start(number, piece).
  template <class Start>
  void start_rest(Start const& start) {
    for (; next_ < buckets_.size(); ++next_) {
      if (buckets_[next_].pending > 0) buckets_[next_].ready = Clock::seconds();
      start(next_, buckets_[next_].piece);
    }
  }

  /// One entry per bucket, of the last step.
  [[nodiscard]] std::vector<BucketTimes> times() const {
    std::vector<BucketTimes> times;
    add_times(times);
    return times;
  }
  void add_times(std::vector<BucketTimes>& times) const {
    for (auto const& bucket : buckets_)
      times.push_back({static_cast<std::size_t>(bucket.end - bucket.begin) * sizeof(float), bucket.ready,
                       bucket.piece.started_seconds, bucket.piece.finished_seconds});
  }
  /// Seconds that communication took out of backward since the last call.
  [[nodiscard]] double take_seconds_in_backward() noexcept { return std::exchange(in_backward_, 0); }

 private:
  struct Bucket {
    comm::Piece piece;
    Index begin, end;  // elements of the arena
    Index pending;     // of them, not yet ready
    double ready;
  };

  std::vector<Bucket> buckets_;
  std::array<double, 3> rider_{};
  std::size_t next_ = 0;  // bucket to start
  double in_backward_ = 0;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::parallel
