// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/comm/shared_memory/detail/rank_waiter.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm::detail {

LOCKSTEP_INLINE bool RankWaiter::all_reached(CounterOf counter, std::uint32_t target) noexcept {
  for (int r = 0; r < size_; ++r) {
    if (r == rank_ || reached(signal(r, counter).load(), target)) continue;
    blocked_ = {counter, target, r};
    return false;
  }
  return true;
}

LOCKSTEP_INLINE bool RankWaiter::all_posted(std::uint32_t number) noexcept {
  for (int r = 0; r < size_; ++r) {
    if (r == rank_ || memory_->block(r).slot[number % RankBlock::slots].descriptor.has_number(number)) continue;
    blocked_ = {&RankBlock::posted, number + 1, r};
    return false;
  }
  return true;
}

LOCKSTEP_INLINE void RankWaiter::wait(std::uint32_t number, Descriptor const& operation) {
  auto const has_reached = [target = blocked_.target](std::uint32_t value) { return reached(value, target); };
  auto& awaited = signal(blocked_.rank, blocked_.counter);
  auto const since = Clock::seconds();
  for (bool warned = false; !awaited.sleep(has_reached, deadline_in(check_seconds));) {
    if (control().first_failure() >= 0 || control().has_ended(memory_->run_rank(blocked_.rank))) {
      if (has_reached(awaited.load())) return;  // the rank had finished its part before
      throw_lost(number, operation);
    }
    throw_if_mismatched(number, operation);  // before all ranks have posted, too
    auto const waited = Clock::seconds() - since;
    if (waited > settings_.limits.stall_seconds)
      throw RankStalled(memory_->run_rank(blocked_.rank),
                        describe_wait(number, operation, waited) + ". It is alive; the limit of " +
                            rounded(settings_.limits.stall_seconds) + " s is over" + remedy(),
                        history());
    if (warned || waited < settings_.limits.warn_seconds) continue;
    warned = true;
    bool const first = memory_->block(0).warned_operation.exchange(number + 1) !=
                       number + 1;  // one warning for all the ranks that wait
    if (settings_.warn && first)
      settings_.warn(describe_wait(number, operation, waited) + ". It is alive; still waiting" + remedy());
  }
}

LOCKSTEP_INLINE void RankWaiter::throw_if_mismatched(std::uint32_t number, Descriptor const& mine) const {
  Descriptor other;
  auto const message = mismatch_message(
      "operation " + std::to_string(number), rank_, size_, mine, [&](int r) { return rank_name(r); },
      [&](int r) -> Descriptor const* {
        auto const& shared = memory_->block(r).slot[number % RankBlock::slots].descriptor;
        if (r == rank_ || !shared.has_number(number)) return nullptr;
        return &(other = shared.load());
      });
  if (!message.empty()) throw CollectiveMismatch(message, history());
}

LOCKSTEP_INLINE void RankWaiter::report_history(CommunicationError const& error) const {
  if (auto const* lost = dynamic_cast<RankLost const*>(&error); lost && control().has_reported_error(lost->rank()))
    return;
  if (settings_.warn && memory_->block(0).history_reported.exchange(1) == 0)
    settings_.warn("the last operations of each rank:\n" + history(history_in_warning));
}

LOCKSTEP_INLINE std::string RankWaiter::history(std::uint32_t last) const {
  std::string out;
  auto const now = Clock::seconds();
  for (int r = 0; r < size_; ++r) {
    auto const& block = memory_->block(r);
    auto const posted = block.posted.signal.load(), done = block.done.signal.load();
    out += rank_name(r) + ":";
    bool any = false;
    for (auto number = posted - std::min(posted, last); number != posted; ++number) {
      auto const d = block.slot[number % RankBlock::slots].descriptor.load();
      if (block.posted.signal.load() - number > RankBlock::slots - 1) continue;  // overwritten during the read
      char ago[32];
      std::snprintf(ago, sizeof ago, " %.3f s ago", now - d.started_seconds);
      out += (any ? "; " : " ") + std::to_string(number) + " " + describe(d) + ago;
      if (!reached(done, number + 1)) out += ", under way";
      any = true;
    }
    out += any ? "\n" : " nothing yet\n";
  }
  return out;
}

LOCKSTEP_INLINE Signal<Sharing::processes>& RankWaiter::signal(int rank, CounterOf counter) const noexcept {
  return (memory_->block(rank).*counter).signal;
}

LOCKSTEP_INLINE std::string RankWaiter::describe_wait(std::uint32_t number, Descriptor const& operation,
                                                      double waited) const {
  std::string missing;
  for (int r = 0; r < size_; ++r) {
    auto const posted = signal(r, &RankBlock::posted).load();
    if (r == rank_ || reached(signal(r, blocked_.counter).load(), blocked_.target)) continue;
    missing += (missing.empty() ? "" : ", and for ") + rank_name(r);
    if (posted == 0)
      missing += ", which has taken part in no operation yet";
    else
      missing += ", last seen in operation " + std::to_string(posted - 1) + " (" +
                 describe(memory_->block(r).slot[(posted - 1) % RankBlock::slots].descriptor.load()) + ")";
  }
  return rank_name(rank_) + " has waited " + rounded(waited) + " s in operation " + std::to_string(number) + " (" +
         describe(operation) + ") for " + missing;
}

LOCKSTEP_INLINE void RankWaiter::throw_lost(std::uint32_t number, Descriptor const& operation) const {
  auto const failed = control().first_failure();
  auto const lost = failed >= 0 ? failed : memory_->run_rank(blocked_.rank);
  throw RankLost(lost,
                 control().describe(lost) + "; " + rank_name(rank_) + " was waiting in operation " +
                     std::to_string(number) + " (" + describe(operation) + ")",
                 history());
}

}}}  // namespace lockstep::comm::detail
