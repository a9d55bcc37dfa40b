// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include <lockstep/core/error.hpp>
#include <lockstep/core/hmac_sha256.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

/// Use of a connection: `requests` for calls of the rank, `notifications` for the ends of ranks.
enum class StoreConnectionKind : std::int32_t { requests, notifications };

/// Random number that is used once, against replays.
using StoreNonce = std::array<std::uint8_t, 32>;
/// @throws ConfigError if the system has no random numbers
StoreNonce new_nonce();

/// First message of a client of the store. Integers are little-endian, as on all supported machines.
///
/// If the run has a secret, the store answers with a StoreChallenge, which proves that it knows the secret, and the
/// client proves the same by `StoreCall::prove`. An accepted client then gets the magic number. Nothing that follows is
/// encrypted or signed.
struct StoreHandshake {
  static constexpr std::uint64_t expected_magic = 0x45524f54534b434c;  // "LCKSTORE"
  static constexpr std::uint32_t expected_version = 6;
  static constexpr std::size_t bytes_of_any_version = 32;  // before the nonce

  std::uint64_t magic = expected_magic;
  std::uint32_t version = expected_version;
  std::int32_t rank = 0;
  std::uint64_t job = 0;
  std::int32_t size = 0;
  StoreConnectionKind kind = StoreConnectionKind::requests;
  StoreNonce nonce = {};

  static std::string_view acceptance() noexcept;
};
static_assert(sizeof(StoreHandshake) == 64);

/// Answer of a store that has a secret.
struct StoreChallenge {
  StoreNonce nonce;
  Sha256::Digest proof;
};

enum class StoreSide { client, server };
/// Returns what proves to the other side that the client or the store knows the run's secret. Holds for one connection:
/// it depends on the whole handshake (rank, size, kind, nonce), on the store's nonce and on its port, so that a program
/// at another port cannot pass it on.
Sha256::Digest store_proof(std::string_view secret, StoreSide side, StoreHandshake const& handshake,
                           StoreNonce const& server_nonce, std::uint16_t port) noexcept;

enum class StoreCall : std::uint8_t { set = 1, get, add, leave, gather, contributors, ended, prove };
enum class StoreReply : std::uint8_t { done = 1, refused, lost, gathered, rank_ended, rank_lost, challenge };
inline constexpr std::uint8_t first_store_reply = 1, last_store_reply = 7;

/// Header of each message: its type, and the lengths of its two parts.
struct StoreMessageHeader {
  std::uint8_t type = 0;
  std::uint8_t reserved[3] = {};
  std::int32_t rank = 0;  // rank that a reply is about; number of ranks in a gather
  std::uint32_t key_bytes = 0, value_bytes = 0;
};
/// Most bytes of a key or a value; of all values with their names; of contributions that wait for those of other ranks,
/// and of answers that a rank has not read.
inline constexpr std::uint32_t max_store_bytes = 1 << 20, max_stored_bytes = 64 << 20, max_unread_bytes = 512 << 20;
/// Most bytes of an answer's text, such as the reason of a refusal.
inline constexpr std::uint32_t max_store_text_bytes = 4096;
/// Time limit for a reachable peer to complete the handshake or answer a request.
inline constexpr double max_answer_seconds = 4;
/// Longest time by which a wait may exceed the caller's limit.
inline constexpr double max_late_seconds = 0.8;

/// End of a rank, as it is sent to the others.
struct RankEnd {
  std::int32_t exit_code = 0, signal = 0;
  char message[max_message_bytes + 1] = {};
  void terminate_string() noexcept { message[sizeof message - 1] = '\0'; }
};
/// A rank's host, how often its launcher has restarted it and, from rank 0, the run's number.
struct RankArrival {
  std::uint64_t job = 0;
  std::int32_t pid = 0, restarts = 0;
  char host[64] = {};
  void terminate_string() noexcept { host[sizeof host - 1] = '\0'; }
};
/// Converts one of these to bytes and back. Its string is null-terminated for any bytes.
template <class Value>
std::string_view as_bytes(Value const& plain) noexcept {
  return {reinterpret_cast<char const*>(&plain), sizeof plain};
}
template <class Value>
Value from_bytes(std::string_view bytes) noexcept {
  Value plain;
  std::memcpy(&plain, bytes.data(), bytes.size() < sizeof plain ? bytes.size() : sizeof plain);
  plain.terminate_string();
  return plain;
}

std::string store_message(std::uint8_t type, std::string_view key, std::string_view value, int rank = 0);

/// Makes the system detect a lost host or network within `seconds`. It probes an idle connection each second, or a
/// hundred times for a long limit. For `notifications` it also limits how long sent data may stay unacknowledged. This
/// does not apply to `requests`, whose owner may not read while it works.
void detect_silence(int file, double seconds, StoreConnectionKind kind) noexcept;

}}}  // namespace lockstep::launch::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/launch/detail/store_protocol.ipp>
#endif
