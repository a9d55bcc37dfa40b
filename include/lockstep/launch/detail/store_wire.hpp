// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

/// Use of a connection: `calls` for requests, `news` to exchange the ends of ranks.
enum class StoreLineKind : std::int32_t { calls, news };

/// First message of a client of the store. An accepted client gets the magic number as its first answer. Integers are
/// little-endian, as on all supported machines.
struct StoreHello {
  static constexpr std::uint64_t right_magic = 0x45524f54534b434c;  // "LCKSTORE"
  static constexpr std::uint32_t right_version = 4;

  std::uint64_t magic = right_magic;
  std::uint32_t version = right_version;
  std::int32_t rank = 0;
  std::uint64_t job = 0;
  std::int32_t size = 0;
  StoreLineKind kind = StoreLineKind::calls;

  static std::string_view welcome() noexcept {
    return {reinterpret_cast<char const*>(&right_magic), sizeof right_magic};
  }
};

enum class StoreCall : std::uint8_t { set = 1, get, add, leave, gather, contributors, ended };
enum class StoreReply : std::uint8_t { done = 1, refused, lost, gathered, rank_ended, rank_lost };
inline constexpr std::uint8_t first_store_reply = 1, last_store_reply = 6;

/// Head of each message: its kind, and the lengths of its two parts.
struct StoreHead {
  std::uint8_t what = 0;
  std::uint8_t reserved[3] = {};
  std::int32_t rank = 0;  // rank that a reply is about; number of ranks in a gather
  std::uint32_t key_bytes = 0, value_bytes = 0;
};
inline constexpr std::uint32_t most_store_bytes = 1 << 20, most_store_reply_bytes = 1 << 30;
/// Time limit for a reachable peer to complete the handshake or answer a request.
inline constexpr double most_answer_seconds = 4;

/// A rank's end, as it is sent to the others.
struct StoreEnd {
  std::int32_t exit_code = 0, signal = 0;
  char message[480] = {};
  void end_text() noexcept { message[sizeof message - 1] = '\0'; }
};
/// A rank's host, how often its launcher has restarted it and, from rank 0, the run's number.
struct StoreJoin {
  std::uint64_t job = 0;
  std::int32_t pid = 0, restarts = 0;
  char host[64] = {};
  void end_text() noexcept { host[sizeof host - 1] = '\0'; }
};
/// Converts one of these to bytes and back. Its string is null-terminated for any bytes.
template <class T>
std::string_view store_bytes(T const& plain) noexcept {
  return {reinterpret_cast<char const*>(&plain), sizeof plain};
}
template <class T>
T from_store(std::string_view bytes) noexcept {
  T plain;
  std::memcpy(&plain, bytes.data(), bytes.size() < sizeof plain ? bytes.size() : sizeof plain);
  plain.end_text();
  return plain;
}

inline std::string store_message(std::uint8_t what, std::string_view key, std::string_view value, int rank = 0) {
  StoreHead head{what, {}, rank, static_cast<std::uint32_t>(key.size()), static_cast<std::uint32_t>(value.size())};
  std::string out(sizeof head, '\0');
  std::memcpy(out.data(), &head, sizeof head);
  return out.append(key).append(value);
}

/// Makes the system detect a lost host or network within `seconds`. It probes an idle connection each second, or a
/// hundred times for a long limit. For `news` it also limits how long sent data may stay unacknowledged. This does not
/// apply to `calls`, whose owner may not read while it works.
inline void notice_silence(int file, double seconds, StoreLineKind kind) noexcept {
  int const on = 1, whole = static_cast<int>(seconds), interval = 1 + whole / 100,
            count = std::max(1, whole / interval - 2),
            milliseconds = kind == StoreLineKind::news ? static_cast<int>(seconds * 1000) : 0;
  ::setsockopt(file, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(file, IPPROTO_TCP, TCP_KEEPIDLE, &interval, sizeof interval);
  ::setsockopt(file, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  ::setsockopt(file, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
  ::setsockopt(file, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof milliseconds);
  ::setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}}}  // namespace lockstep::launch::detail
