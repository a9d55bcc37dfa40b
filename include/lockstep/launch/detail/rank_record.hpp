// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include <lockstep/core/version.hpp>

namespace lockstep::inline LOCKSTEP_ABI::launch::detail {

enum class RankState : std::uint32_t {
  absent,   ///< has not joined yet
  running,  ///< has joined
  ended,    ///< returned from its work without an error
  failed,   ///< will never answer again: threw, was killed, or ended with an error
  lost,     ///< the same, from who could not see how: its process is gone
};

/// How a rank fares, in memory that all ranks share. All bytes zero is a rank that has not joined. Written by the rank
/// itself, or by whoever started it once it is gone; read by all.
struct RankRecord {
  std::atomic<RankState> state;
  std::atomic<std::int32_t> pid;  ///< 0 for a thread
  std::atomic<bool> elsewhere;    ///< on another host, whose name is then valid
  std::atomic<bool> ends_itself;  ///< a thread of the rank has begun to say how it ends
  std::atomic<bool> unheard;      ///< it gave up waiting for the first rank, which may not hear so
  char host[64];
  // What follows is valid once the state is `ended` or `failed`, and never written after.
  std::int32_t exit_code;  ///< what the rank returned, or would have
  std::int32_t signal;     ///< what killed it, or 0
  char message[480];       ///< what it threw, or empty

  void say(std::string_view text) noexcept { message[text.copy(message, sizeof message - 1)] = '\0'; }

  /// What happened, without the rank: "was killed by signal 9 (Killed)".
  [[nodiscard]] std::string happened() const {
    switch (state.load(std::memory_order_acquire)) {
      case RankState::absent:
        return "has not joined";
      case RankState::running:
        return "is alive";
      case RankState::ended:
        return "has ended its work";
      case RankState::lost:
        return std::string("is gone: its process was killed, or ended without a word") +
               (elsewhere.load(std::memory_order_acquire) ? ", or its host cannot be reached" : "");
      case RankState::failed:
        break;
    }
    if (signal != 0) return "was killed by signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
    if (message[0] != '\0') return std::string("failed: ") + message;
    return "ended with exit code " + std::to_string(exit_code);
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::launch::detail
