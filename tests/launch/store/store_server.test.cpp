// SPDX-License-Identifier: Apache-2.0
#include <lockstep/launch/store/store_server.hpp>

#include <doctest/doctest.h>

#include <sys/resource.h>
#include <time.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

using namespace lockstep;
using launch::StoreServer;

TEST_CASE("a hundred servers at once get different ports") {
  std::vector<std::unique_ptr<StoreServer>> servers;
  std::set<int> ports;
  for (std::uint64_t i = 0; i < 100; ++i) {
    servers.push_back(std::make_unique<StoreServer>(StoreServer::Options{.job = i}));
    ports.insert(servers.back()->port());
  }
  CHECK(ports.size() == 100);
  CHECK_FALSE(ports.contains(0));
}

TEST_CASE("a port in use is refused by number, and is free again afterwards") {
  auto first = std::make_unique<StoreServer>(StoreServer::Options{});
  StoreServer::Options const same{.port = first->port()};
  CHECK_THROWS_WITH_AS(StoreServer{same}, doctest::Contains(("port " + std::to_string(same.port)).c_str()),
                       ConfigError);
  first.reset();
  CHECK(StoreServer(same).port() == same.port);
}

TEST_CASE("a port in use for IPv6 alone counts as in use: clients would find the other process") {
  FileDescriptor const other(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  int const on = 1;
  sockaddr_in6 name{};
  name.sin6_family = AF_INET6;
  name.sin6_addr = in6addr_loopback;
  socklen_t bytes = sizeof name;
  if (::setsockopt(other.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) != 0 ||
      ::bind(other.get(), reinterpret_cast<sockaddr*>(&name), bytes) != 0) {
    MESSAGE("not tested: this system has no IPv6");
    return;
  }
  REQUIRE(::listen(other.get(), 1) == 0);
  REQUIRE(::getsockname(other.get(), reinterpret_cast<sockaddr*>(&name), &bytes) == 0);
  StoreServer::Options const same{.port = ntohs(name.sin6_port)};
  CHECK_THROWS_WITH_AS(StoreServer{same}, doctest::Contains("is not available"), ConfigError);
}

TEST_CASE("a server without a free descriptor leaves clients waiting, and does not spin") {
  StoreServer const server(StoreServer::Options{});
  FileDescriptor const peer(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(server.port());
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto const processor_seconds = [] {
    timespec used{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
  };
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit const none{static_cast<rlim_t>(peer.get()) + 1, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  bool const connected = ::connect(peer.get(), reinterpret_cast<sockaddr const*>(&name), sizeof name) == 0;
  auto const begin = processor_seconds();
  ::usleep(300'000);
  auto const used = processor_seconds() - begin;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(connected);
  CHECK(used < 0.1);
  std::string const foreign_server(8, 'x');  // to which the server sends nothing after the handshake
  CHECK(::send(peer.get(), foreign_server.data(), foreign_server.size(), MSG_NOSIGNAL) == 8);
  char answer = 0;
  CHECK(::recv(peer.get(), &answer, 1, 0) <= 0);
}
