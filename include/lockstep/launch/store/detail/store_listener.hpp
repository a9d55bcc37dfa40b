// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/file_descriptor.hpp>
#include <lockstep/launch/detail/local_socket.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

/// The sockets at which a store accepts connections.
class StoreListener {
 public:
  /// Listens on the addresses of `host`, which are those of one network interface, or of the loopback interface for
  /// "localhost". Listens on all interfaces if `host` is no address of this host, as behind a translated address, or is
  /// this host's own name and means the loopback interface here, as in Debian's /etc/hosts.
  /// @param port 0: any free one
  /// @throws ConfigError if the port is not available
  static StoreListener at_host(std::string const& host, std::uint16_t port);
  /// Listens on an abstract Unix socket, which only processes of this host can reach.
  /// @throws ConfigError if the name is not available
  static StoreListener at_name(std::string const& name);

  [[nodiscard]] std::vector<FileDescriptor> const& sockets() const noexcept { return sockets_; }
  /// Returns whether the other ends are processes of this host whose user the system knows.
  [[nodiscard]] bool is_local() const noexcept { return is_local_; }
  [[nodiscard]] bool on_all_interfaces() const noexcept { return on_all_interfaces_; }
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  /// Returns an address for clients of this process.
  [[nodiscard]] std::string const& host() const noexcept { return host_; }

 private:
  static constexpr int socket_type = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
  /// Longest queue of connections that are not accepted yet; the system may shorten it. Long, so that many strangers in
  /// it do not keep a rank out, which would try again only after a second.
  static constexpr int backlog = 4096;

  /// Opens a socket for each address. Skips addresses that this host does not have.
  /// @returns 0, or the error that makes the port unavailable
  int open(addrinfo const* addresses, std::uint16_t port);
  void open_all(addrinfo const* addresses, std::uint16_t port);

  std::vector<FileDescriptor> sockets_;
  bool is_local_ = false, on_all_interfaces_ = false;
  std::uint16_t port_ = 0;
  std::string host_ = "localhost";
};

}}}  // namespace lockstep::launch::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/launch/store/detail/store_listener.ipp>
#endif
