// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include <lockstep/core/version.hpp>

namespace lockstep::inline LOCKSTEP_ABI::launch::detail {

/// What a client of the store says first. Integers lie as on all machines that we support: the lowest byte first.
struct StoreHello {
  static constexpr std::uint64_t right_magic = 0x45524f54534b434c;  // "LCKSTORE"
  static constexpr std::uint32_t right_version = 1;

  std::uint64_t magic = right_magic;
  std::uint32_t version = right_version;
  std::int32_t rank = 0;
  std::uint64_t job = 0;
  std::int32_t size = 0;
  std::int32_t reserved = 0;
};

enum class StoreCall : std::uint8_t { set = 1, get, add, leave };
enum class StoreReply : std::uint8_t { done = 1, refused, lost };

/// Before each message: what it is, and how long its two parts are.
struct StoreHead {
  std::uint8_t what = 0;
  std::uint8_t reserved[3] = {};
  std::int32_t rank = 0;  // of a reply: the lost rank
  std::uint32_t key_bytes = 0, value_bytes = 0;
};
inline constexpr std::uint32_t most_store_bytes = 1 << 20;

inline std::string store_message(std::uint8_t what, std::string_view key, std::string_view value, int rank = 0) {
  StoreHead head{what, {}, rank, static_cast<std::uint32_t>(key.size()), static_cast<std::uint32_t>(value.size())};
  std::string out(sizeof head, '\0');
  std::memcpy(out.data(), &head, sizeof head);
  return out.append(key).append(value);
}

/// A peer that does not answer, because its host or the network is gone, is noticed within `seconds`: the system asks
/// an idle one each second, and waits no longer for one that owes an answer.
inline void notice_silence(int file, double seconds) noexcept {
  int const on = 1, idle = 1, interval = 1, count = seconds < 3 ? 1 : static_cast<int>(seconds) - 2,
            milliseconds = static_cast<int>(seconds * 1000);
  ::setsockopt(file, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(file, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  ::setsockopt(file, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  ::setsockopt(file, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
  ::setsockopt(file, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof milliseconds);
  ::setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace lockstep::inline LOCKSTEP_ABI::launch::detail
