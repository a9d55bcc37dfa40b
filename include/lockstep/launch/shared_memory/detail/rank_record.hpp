// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include <lockstep/core/error.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

enum class RankState : std::uint32_t {
  absent,   ///< has not joined yet
  running,  ///< has joined
  ended,    ///< returned from its work without an error
  failed,   ///< will not answer again: threw, was killed, or ended with an error
  lost,     ///< its process is gone for an unknown reason
};

/// State of a rank in memory that all ranks share. All zero bytes is a rank that has not joined. The rank itself writes
/// it, or its launcher once the rank is gone; all ranks read it.
struct RankRecord {
  std::atomic<RankState> state;
  std::atomic<std::int32_t> pid;     ///< 0 for a thread
  std::atomic<bool> is_remote;       ///< on another host, named by `host`
  std::atomic<bool> ends_itself;     ///< a thread of the rank has begun to write its end
  std::atomic<bool> lost_rank_zero;  ///< it ended because rank 0 stalled, which may not receive this
  char host[64];
  // The rest is valid, and constant, once the state is `ended` or `failed`.
  std::int32_t exit_code;               ///< the rank's exit code
  std::int32_t signal;                  ///< the signal that killed it, or 0
  char message[max_message_bytes + 1];  ///< its error message, or empty

  void set_message(std::string_view text) noexcept;

  /// Describes the state without the rank: "was killed by signal 9 (Killed)".
  [[nodiscard]] std::string describe_state() const;
};

}}}  // namespace lockstep::launch::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/launch/shared_memory/detail/rank_record.ipp>
#endif
