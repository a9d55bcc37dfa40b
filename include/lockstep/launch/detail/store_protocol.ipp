// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/launch/detail/store_protocol.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

LOCKSTEP_INLINE std::string_view StoreHandshake::acceptance() noexcept {
  return {reinterpret_cast<char const*>(&expected_magic), sizeof expected_magic};
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
