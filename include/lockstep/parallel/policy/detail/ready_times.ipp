// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/comm/operation.hpp>
#include <lockstep/core/clock.hpp>
#include <lockstep/parallel/gradients/row_exchange.hpp>
#include <lockstep/parallel/policy/detail/ready_times.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

inline constexpr auto start_nothing = [](std::size_t, comm::CollectiveOperation&) {};

LOCKSTEP_COLD_INLINE ReadyTimes::ReadyTimes(std::span<float> gradients, std::span<kernel::TouchedRows const> tables,
                                            bool on_host)
    : buckets_(gradients, gradients.size() / 32 * sizeof(float), tables), tables_(tables), on_host_(on_host) {}

LOCKSTEP_INLINE nn::ReadySink ReadyTimes::sink() noexcept {
  return {[](void* self, Index offset, Index count) {
            static_cast<ReadyTimes*>(self)->buckets_.fill(offset, count, Clock::seconds(), start_nothing);
          },
          this};
}

LOCKSTEP_INLINE void ReadyTimes::end_step() {
  buckets_.start_remaining(start_nothing);
  ended_ = Clock::seconds();
}

LOCKSTEP_COLD_INLINE std::vector<BucketTimes> ReadyTimes::times() const {
  if (ended_ == 0) return {};
  auto times = buckets_.times();
  RowExchange::add_times(times, tables_, ended_);
  return times;
}

}}}  // namespace lockstep::parallel::detail
