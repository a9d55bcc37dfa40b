// SPDX-License-Identifier: Apache-2.0
#include <lockstep/launch/store_server.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

using namespace lockstep;
using launch::StoreServer;

TEST_CASE("a hundred servers at once find ports of their own") {
  std::vector<std::unique_ptr<StoreServer>> servers;
  std::set<int> ports;
  for (std::uint64_t i = 0; i < 100; ++i) {
    servers.push_back(std::make_unique<StoreServer>(StoreServer::Options{.job = i}));
    ports.insert(servers.back()->port());
  }
  CHECK(ports.size() == 100);
  CHECK_FALSE(ports.contains(0));
}

TEST_CASE("a port that is taken is refused by number, and free again afterwards") {
  auto first = std::make_unique<StoreServer>(StoreServer::Options{});
  StoreServer::Options const same{.port = first->port()};
  CHECK_THROWS_WITH_AS(StoreServer{same}, doctest::Contains(("port " + std::to_string(same.port)).c_str()),
                       ConfigError);
  first.reset();
  CHECK(StoreServer(same).port() == same.port);
}

TEST_CASE("a port that another has for IPv6 alone is taken: who looks for the store there would find the other") {
  launch::detail::File const other(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
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
  CHECK_THROWS_WITH_AS(StoreServer{same}, doctest::Contains("cannot be had"), ConfigError);
}
