// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/parallel/gradients/gradient_buckets.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel {

LOCKSTEP_INLINE GradientBuckets::GradientBuckets(std::span<float> arena, std::size_t bucket_bytes,
                                                 std::span<kernel::TouchedRows const> tables, int rank, int ranks)
    : GradientBuckets(detail::InPlace{arena.data()}, std::ssize(arena),
                      static_cast<Index>(bucket_bytes / sizeof(float)), tables, rank, ranks) {}

LOCKSTEP_INLINE Index GradientBuckets::next_length(Index full, Index rest, bool first) noexcept {
  return detail::next_length(full, rest, first);
}

LOCKSTEP_INLINE void GradientBuckets::begin_step() {
  if (in_progress_)
    throw CommunicationError(
        "DistributedDataParallel: an exception ended an earlier step while its gradients were on their way to other "
        "ranks, which may have continued without it: this trainer cannot continue; let such an exception end the "
        "rank");
  next_ = 0;
  for (auto& bucket : buckets_) bucket.pending = bucket.end - bucket.begin;
}

LOCKSTEP_INLINE detail::ArenaPart GradientBuckets::range_of(std::size_t i) const noexcept {
  return {buckets_[i].begin, buckets_[i].end};
}

LOCKSTEP_INLINE comm::CollectiveOperation& GradientBuckets::ready_operation(std::size_t i, double now) noexcept {
  buckets_[i].ready = now;
  return buckets_[i].operation;
}

LOCKSTEP_INLINE comm::CollectiveOperation const& GradientBuckets::operation(std::size_t i) const noexcept {
  return buckets_[i].operation;
}

LOCKSTEP_INLINE std::vector<BucketTimes> GradientBuckets::times() const {
  std::vector<BucketTimes> times;
  add_times(times);
  return times;
}

LOCKSTEP_INLINE void GradientBuckets::add_times(std::vector<BucketTimes>& times) const {
  for (auto const& bucket : buckets_)
    times.push_back({static_cast<std::size_t>(bucket.end - bucket.begin) * size_of(bucket.operation.type), bucket.ready,
                     bucket.operation.started_seconds, bucket.operation.finished_seconds});
}

}}}  // namespace lockstep::parallel
