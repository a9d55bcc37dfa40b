// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstddef>
#include <string>

#include <lockstep/core/clock.hpp>
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/loader/detail/loader_slot.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// Returns the message for a `next` that waits longer than its deadline: the current work of the first `threads`
/// workers.
template <class D, class Workers, class Slot>
[[nodiscard]] std::string deadline_message(D const& dataset, Workers const& workers, std::size_t threads,
                                           Slot const& slot, double deadline_seconds) {
  auto const now = Clock::seconds();
  auto const seconds = [](double s) { return std::to_string(static_cast<Index>(s * 1000)) + " ms"; };
  auto out = "DataLoader: no batch within " + seconds(deadline_seconds) + " for epoch " + std::to_string(slot.epoch) +
             ", step " + std::to_string(slot.step) + "; ";
  for (std::size_t i = 0; i < threads; ++i) {
    auto const& worker = *workers[i];
    out += "worker " + std::to_string(i);
    if (worker.phase == Phase::read || worker.phase == Phase::write) {
      out += std::string(worker.phase == Phase::read ? " reads " : " writes ") +
             name_of(dataset, worker.index.load(std::memory_order_relaxed)) + ", position " +
             std::to_string(worker.position.load(std::memory_order_relaxed)) + ", running for " +
             seconds(now - worker.since) + "; ";
    } else {
      out += worker.phase == Phase::done ? " has nothing to do; " : " lays out a batch; ";
    }
  }
  return out + "call `next` again to continue waiting, or raise deadline_seconds if samples are that slow";
}

}}}  // namespace lockstep::data::detail
