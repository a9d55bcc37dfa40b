// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/parallel/detail/replica_groups.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

LOCKSTEP_COLD_INLINE ThreadExchange::ThreadExchange(int size) : contributions_(static_cast<std::size_t>(size)) {}

LOCKSTEP_COLD_INLINE ThreadExchange::~ThreadExchange() = default;

LOCKSTEP_INLINE void ThreadExchange::end_pass(std::exception_ptr const& failure) noexcept {
  std::lock_guard const lock(mutex_);
  ++ended_;
  if (failure) fail(failure);
  if (arrived_ > 0) fail(pass_ended_error());
}

LOCKSTEP_INLINE void ThreadExchange::contribute(int rank, Contribution const& mine) {
  contributions_[static_cast<std::size_t>(rank)] = mine;
  arrive_and_wait();
  for (auto const& other : contributions_)  // equal on all threads
    if (other.kind != contributions_[0].kind || other.bytes != contributions_[0].bytes)
      throw CollectiveMismatch("DataParallel: device " + std::to_string(&other - contributions_.data()) +
                               " has reached " + text(other) + " and device 0 to " + text(contributions_[0]) + rule);
}

LOCKSTEP_INLINE void ThreadExchange::arrive_and_wait() {
  std::uint32_t round = 0;
  {
    std::lock_guard const lock(mutex_);
    if (ended_ > 0) fail(pass_ended_error());
    if (failure_) std::rethrow_exception(failure_);
    round = round_.load();
    if (++arrived_ == size()) {
      arrived_ = 0;
      next_round();
      return;
    }
  }
  round_.wait([round](std::uint32_t now) { return now != round; });
  std::lock_guard const lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

LOCKSTEP_INLINE void ThreadExchange::fail(std::exception_ptr const& failure) noexcept {
  if (!failure_) failure_ = failure;
  next_round();
}

LOCKSTEP_INLINE void ThreadExchange::next_round() noexcept {
  round_.add(1);
  round_.wake();
}

LOCKSTEP_COLD_INLINE std::exception_ptr ThreadExchange::pass_ended_error() noexcept {
  return std::make_exception_ptr(
      CollectiveMismatch(std::string("DataParallel: one device has finished its pass, but another has reached a "
                                     "layer that combines all devices") +
                         rule));
}

LOCKSTEP_COLD_INLINE std::string ThreadExchange::text(Contribution const& contribution) {
  return "an exchange (" + std::string(contribution.kind) + ") of " + std::to_string(contribution.bytes) + " bytes";
}

LOCKSTEP_INLINE void ThreadTransport::all_gather(void const* mine, void* all, std::size_t bytes) {
  thread_exchange_->exchange(rank_, {mine, bytes, "all_gather"}, [&](auto const& contributions) {
    auto* to = static_cast<std::byte*>(all);
    for (auto const& from : contributions) {
      if (bytes > 0) std::memcpy(to, from.data, bytes);
      to += bytes;
    }
  });
}

LOCKSTEP_COLD_INLINE void SequentialShards::refuse() const {
  throw ConfigError("Reproducible: each device computes " + std::to_string(shards_) +
                    " shards one after the other, but the model has a layer that combines all shards, such as a "
                    "synchronized BatchNorm or nn::all_gather; use as many ranks or devices as shards, or leave out "
                    "Reproducible");
}

LOCKSTEP_COLD_INLINE void NoExchange::refuse() {
  throw ConfigError(
      "a rehearsed pass has reached a layer that combines all replicas, such as a synchronized BatchNorm");
}

template <class Value>
LOCKSTEP_INLINE void ThreadTransport::reduce_scatter(Value const* in, Value* out, Index count) {
  auto const bytes = static_cast<std::size_t>(size()) * static_cast<std::size_t>(count) * sizeof(Value);
  thread_exchange_->exchange(rank_, {in, bytes, "reduce_scatter"}, [&](auto const& contributions) {
    for (Index i = 0; i < count; ++i)
      out[i] = tree_sum(size(), [&](int r) {
        return static_cast<Value const*>(contributions[static_cast<std::size_t>(r)].data)[rank_ * count + i];
      });
  });
}
#if defined(LOCKSTEP_COMPILED)
template void ThreadTransport::reduce_scatter<float>(float const* in, float* out, Index count);
template void ThreadTransport::reduce_scatter<double>(double const* in, double* out, Index count);
#endif

}}}  // namespace lockstep::parallel::detail
