// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/launch/shared_memory/control_page.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch {

LOCKSTEP_INLINE detail::RankRecord const& ControlPage::operator[](int rank) const noexcept {
  return ranks[static_cast<std::size_t>(rank)];
}

LOCKSTEP_INLINE void ControlPage::join(int rank, int pid) noexcept {
  (*this)[rank].pid.store(pid, std::memory_order_relaxed);
  (*this)[rank].state.store(detail::RankState::running, std::memory_order_release);
}

LOCKSTEP_INLINE void ControlPage::join(int rank, int pid, std::string_view host) noexcept {
  auto& record = (*this)[rank];
  record.host[host.copy(record.host, sizeof record.host - 1)] = '\0';
  record.is_remote.store(true, std::memory_order_release);
  join(rank, pid);
}

LOCKSTEP_INLINE void ControlPage::end(int rank, int exit_code, int signal, std::string_view message) noexcept {
  auto& record = (*this)[rank];
  record.exit_code = exit_code;
  record.signal = signal;
  record.set_message(message);
  bool const failed = exit_code != 0 || signal != 0;
  record.state.store(failed ? detail::RankState::failed : detail::RankState::ended, std::memory_order_release);
  std::int32_t none = 0;
  if (failed) first_failure_.compare_exchange_strong(none, rank + 1, std::memory_order_acq_rel);
}

LOCKSTEP_INLINE void ControlPage::end_itself(int rank, int exit_code, int signal, std::string_view message) noexcept {
  auto& record = (*this)[rank];
  if (!record.ends_itself.exchange(true, std::memory_order_acq_rel)) return end(rank, exit_code, signal, message);
  for (;; ::sched_yield()) {
    auto const state = record.state.load(std::memory_order_acquire);
    if (state == detail::RankState::ended || state == detail::RankState::failed) return;
  }
}

LOCKSTEP_INLINE void ControlPage::mark_lost(int rank) noexcept {
  auto& state = (*this)[rank].state;
  auto before = state.load(std::memory_order_acquire);
  if (before == detail::RankState::ended || before == detail::RankState::failed) return;
  std::int32_t none = 0;
  if (state.compare_exchange_strong(before, detail::RankState::lost, std::memory_order_acq_rel))
    first_failure_.compare_exchange_strong(none, rank + 1, std::memory_order_acq_rel);
}

LOCKSTEP_INLINE bool ControlPage::has_ended(int rank) const noexcept {
  auto const state = (*this)[rank].state.load(std::memory_order_acquire);
  return state != detail::RankState::absent && state != detail::RankState::running;
}

LOCKSTEP_INLINE std::string ControlPage::rank_name(int rank) const {
  auto const& record = (*this)[rank];
  auto const pid = record.pid.load(std::memory_order_relaxed);
  auto const where = record.is_remote.load(std::memory_order_acquire) ? std::string(" on ") + record.host : "";
  return "rank " + std::to_string(rank) + (pid != 0 ? " (pid " + std::to_string(pid) + where + ")" : "");
}

LOCKSTEP_INLINE bool ControlPage::has_reported_error(int rank) const noexcept {
  auto const& record = (*this)[rank];
  return record.state.load(std::memory_order_acquire) == detail::RankState::failed && record.signal == 0 &&
         record.message[0] != '\0';
}

LOCKSTEP_INLINE std::string ControlPage::describe(int rank) const {
  auto const name = rank_name(rank);
  auto const& record = (*this)[rank];
  bool const message_has_name = record.state.load(std::memory_order_acquire) == detail::RankState::failed &&
                                record.signal == 0 && std::string_view(record.message).substr(0, name.size()) == name;
  return message_has_name ? record.message : name + " " + record.describe_state();
}

}}}  // namespace lockstep::launch
