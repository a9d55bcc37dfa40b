// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <string>
#include <string_view>

#include <lockstep/core/file_descriptor.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

/// Address of an abstract Unix socket, whose name is no file. Any user may bind, or connect to, any name: compare
/// `peer_credentials` before you use a connection.
struct LocalAddress {
  sockaddr_un name{};
  socklen_t bytes = 0;

  explicit LocalAddress(std::string_view text) {
    name.sun_family = AF_UNIX;
    auto const length = text.copy(name.sun_path + 1, sizeof name.sun_path - 1);
    bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  }
  [[nodiscard]] sockaddr const* get() const noexcept { return reinterpret_cast<sockaddr const*>(&name); }
};

/// Returns the process at the other end of a Unix socket, as the system knows it; user -1 if it does not.
[[nodiscard]] inline ucred peer_credentials(FileDescriptor const& connection) noexcept {
  ucred peer{0, static_cast<uid_t>(-1), 0};
  socklen_t bytes = sizeof peer;
  ::getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes);
  return peer;
}

/// Returns whether the process at the other end of a Unix socket belongs to this process's user.
[[nodiscard]] inline bool is_own_user(FileDescriptor const& connection) noexcept {
  return peer_credentials(connection).uid == ::geteuid();
}

}}}  // namespace lockstep::launch::detail
