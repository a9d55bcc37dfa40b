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
