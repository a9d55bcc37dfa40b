// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/random.h>

#include <cerrno>
#include <span>

#include <lockstep/core/error.hpp>
#include <lockstep/launch/detail/store_protocol.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

LOCKSTEP_INLINE std::string_view StoreHandshake::acceptance() noexcept {
  return {reinterpret_cast<char const*>(&expected_magic), sizeof expected_magic};
}

LOCKSTEP_INLINE StoreNonce new_nonce() {
  StoreNonce nonce;
  ssize_t got = 0;
  do got = ::getrandom(nonce.data(), nonce.size(), 0);
  while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(nonce.size()))
    throw ConfigError(std::string("Store: the system has no random numbers (getrandom: ") + std::strerror(errno) + ")");
  return nonce;
}

LOCKSTEP_INLINE Sha256::Digest store_proof(std::string_view secret, StoreSide side, StoreHandshake const& handshake,
                                           StoreNonce const& server_nonce, std::uint16_t port) noexcept {
  struct Proven {
    char purpose[24] = {};  // another one for each side: neither can send the other's proof back
    std::uint64_t port = 0;
    StoreHandshake handshake;
    StoreNonce server_nonce;
  } proven{{}, port, handshake, server_nonce};
  static_assert(sizeof proven == 128);
  std::string_view(side == StoreSide::client ? "lockstep store client" : "lockstep store server")
      .copy(proven.purpose, sizeof proven.purpose);
  return hmac_sha256(std::as_bytes(std::span(secret)), std::as_bytes(std::span(&proven, 1)));
}

LOCKSTEP_INLINE std::string store_message(std::uint8_t type, std::string_view key, std::string_view value, int rank) {
  StoreMessageHeader head{
      type, {}, rank, static_cast<std::uint32_t>(key.size()), static_cast<std::uint32_t>(value.size())};
  std::string out(sizeof head, '\0');
  std::memcpy(out.data(), &head, sizeof head);
  return out.append(key).append(value);
}

LOCKSTEP_INLINE void detect_silence(int file, double seconds, StoreConnectionKind kind) noexcept {
  int const on = 1, whole = static_cast<int>(seconds), interval = 1 + whole / 100,
            count = std::max(1, whole / interval - 2),
            milliseconds = kind == StoreConnectionKind::notifications ? static_cast<int>(seconds * 1000) : 0;
  ::setsockopt(file, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(file, IPPROTO_TCP, TCP_KEEPIDLE, &interval, sizeof interval);
  ::setsockopt(file, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  ::setsockopt(file, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
  ::setsockopt(file, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof milliseconds);
  ::setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}}}  // namespace lockstep::launch::detail
