// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/launch/store/detail/store_listener.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

namespace store_listener {

/// Addresses of a name, freed at the end.
struct Addresses {
  addrinfo* first = nullptr;
  bool is_number = false;  // the name is an address itself

  /// @param name null: this host's own addresses for `flags`
  Addresses(char const* name, int flags) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags | AI_NUMERICHOST;
    is_number = ::getaddrinfo(name, "0", &hints, &first) == 0;
    hints.ai_flags = flags;
    if (!is_number && ::getaddrinfo(name, "0", &hints, &first) != 0) first = nullptr;
  }
  Addresses(Addresses const&) = delete;
  Addresses& operator=(Addresses const&) = delete;
  ~Addresses() {
    if (first) ::freeaddrinfo(first);
  }
  [[nodiscard]] bool all_loopback() const noexcept {
    for (auto const* one = first; one; one = one->ai_next) {
      bool const loops =
          one->ai_family == AF_INET6
              ? IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<sockaddr_in6 const*>(one->ai_addr)->sin6_addr)
              : (ntohl(reinterpret_cast<sockaddr_in const*>(one->ai_addr)->sin_addr.s_addr) >> 24) == 127;
      if (!loops) return false;
    }
    return first != nullptr;
  }
};

}  // namespace store_listener

LOCKSTEP_INLINE StoreListener StoreListener::at_host(std::string const& host, std::uint16_t port) {
  StoreListener out;
  bool const is_this_host = host == "localhost";
  store_listener::Addresses const named(is_this_host ? nullptr : host.c_str(), 0);
  bool const is_own_name = !is_this_host && !named.is_number && named.all_loopback();
  if (named.first && !is_own_name) out.open_all(named.first, port);
  if (!out.sockets_.empty()) return out;
  store_listener::Addresses const any(nullptr, AI_PASSIVE);
  out.open_all(any.first, port);
  if (out.sockets_.empty())
    throw ConfigError("StoreServer: this host has no network address (" + host + "), not even that of loopback");
  out.on_all_interfaces_ = true;
  out.host_ = "localhost";
  return out;
}

LOCKSTEP_INLINE StoreListener StoreListener::at_name(std::string const& name) {
  StoreListener out;
  LocalAddress const address(name);
  FileDescriptor file(::socket(AF_UNIX, socket_type, 0));
  if (file.get() < 0 || ::bind(file.get(), address.get(), address.bytes) != 0 || ::listen(file.get(), backlog) != 0)
    throw ConfigError("StoreServer: the name " + name + " is not available (" + std::strerror(errno) +
                      "); another run of the same name is running on this host");
  out.sockets_.push_back(std::move(file));
  out.is_local_ = true;
  return out;
}

LOCKSTEP_INLINE void StoreListener::open_all(addrinfo const* addresses, std::uint16_t port) {
  int error = 0;
  for (int tries = port == 0 ? 32 : 1; tries > 0;
       --tries) {  // a port that is free on one address may be in use on another
    error = open(addresses, port);
    if (error == 0) return;
    sockets_.clear();
  }
  throw ConfigError("StoreServer: port " + std::to_string(port) + " is not available (" + std::strerror(error) +
                    "); another program or another rank 0 uses it; choose another port");
}

LOCKSTEP_INLINE int StoreListener::open(addrinfo const* addresses, std::uint16_t port) {
  port_ = port;
  for (auto const* one = addresses; one; one = one->ai_next) {
    if (one->ai_family != AF_INET && one->ai_family != AF_INET6) continue;
    FileDescriptor file(::socket(one->ai_family, socket_type, 0));
    if (file.get() < 0) {
      if (errno == EAFNOSUPPORT) continue;
      return errno;
    }
    int const on = 1;
    ::setsockopt(file.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (one->ai_family == AF_INET6) ::setsockopt(file.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    sockaddr_storage name{};
    std::memcpy(&name, one->ai_addr, one->ai_addrlen);
    // The port has one place in both kinds of address.
    reinterpret_cast<sockaddr_in*>(&name)->sin_port = htons(port_);
    if (::bind(file.get(), reinterpret_cast<sockaddr*>(&name), one->ai_addrlen) != 0) {
      if (errno == EADDRNOTAVAIL) continue;
      return errno;
    }
    if (::listen(file.get(), backlog) != 0) return errno;
    socklen_t bytes = sizeof name;
    ::getsockname(file.get(), reinterpret_cast<sockaddr*>(&name), &bytes);
    port_ = ntohs(reinterpret_cast<sockaddr_in const*>(&name)->sin_port);
    char text[NI_MAXHOST] = {};
    if (sockets_.empty() &&
        ::getnameinfo(reinterpret_cast<sockaddr*>(&name), bytes, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0)
      host_ = text;
    sockets_.push_back(std::move(file));
  }
  return 0;
}

}}}  // namespace lockstep::launch::detail
