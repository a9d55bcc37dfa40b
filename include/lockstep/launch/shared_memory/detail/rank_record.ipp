// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/launch/shared_memory/detail/rank_record.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

LOCKSTEP_COLD_INLINE void RankRecord::set_message(std::string_view text) noexcept {
  message[text.copy(message, sizeof message - 1)] = '\0';
}

LOCKSTEP_COLD_INLINE std::string RankRecord::describe_state() const {
  switch (state.load(std::memory_order_acquire)) {
    case RankState::absent:
      return "has not joined";
    case RankState::running:
      return "is alive";
    case RankState::ended:
      return "has ended its work";
    case RankState::lost:
      return std::string("is gone: its process was killed, or ended without a message") +
             (is_remote.load(std::memory_order_acquire) ? ", or its host cannot be reached" : "");
    case RankState::failed:
      break;
  }
  if (signal != 0) return "was killed by signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
  if (message[0] != '\0') return std::string("failed: ") + message;
  return "ended with exit code " + std::to_string(exit_code);
}

}}}  // namespace lockstep::launch::detail
