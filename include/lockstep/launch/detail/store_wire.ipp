// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/launch/detail/store_wire.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

LOCKSTEP_INLINE std::string_view StoreHello::welcome() noexcept {
  return {reinterpret_cast<char const*>(&right_magic), sizeof right_magic};
}

LOCKSTEP_INLINE std::string store_message(std::uint8_t what, std::string_view key, std::string_view value, int rank) {
  StoreHead head{what, {}, rank, static_cast<std::uint32_t>(key.size()), static_cast<std::uint32_t>(value.size())};
  std::string out(sizeof head, '\0');
  std::memcpy(out.data(), &head, sizeof head);
  return out.append(key).append(value);
}

LOCKSTEP_INLINE void notice_silence(int file, double seconds, StoreLineKind kind) noexcept {
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
