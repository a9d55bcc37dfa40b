// SPDX-License-Identifier: Apache-2.0
#include <lockstep/launch/store.hpp>

#include <doctest/doctest.h>

#include <lockstep/launch/store_server.hpp>

#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace lockstep;
using launch::Store;
using launch::StoreServer;

namespace {

Store::Options to(StoreServer const& server, int rank, int size, std::uint64_t job = 7) {
  return {"localhost", server.port(), job, rank, size, 5, 5, 4};
}

launch::detail::File connected_to(StoreServer const& server) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(server.port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  launch::detail::File file(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(::connect(file.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  return file;
}

/// Connects and writes these bytes; whether the server hangs up without a word.
bool is_hung_up_on(StoreServer const& server, std::string const& bytes) {
  auto const file = connected_to(server);
  REQUIRE(::send(file.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
  char answer = 0;
  return ::recv(file.get(), &answer, 1, 0) <= 0;
}

std::string hello_of(std::uint64_t magic, std::uint32_t version, std::uint64_t job, int rank = 0, int size = 2) {
  launch::detail::StoreHello hello;
  hello.magic = magic;
  hello.version = version;
  hello.job = job;
  hello.rank = rank;
  hello.size = size;
  return {reinterpret_cast<char const*>(&hello), sizeof hello};
}

}  // namespace

TEST_CASE("what one rank sets the others get, also when they asked before") {
  StoreServer const server({.job = 7, .size = 3});
  std::string early;
  std::thread asks([&] { early = Store(to(server, 1, 3)).get("id"); });
  Store store(to(server, 0, 3)), other(to(server, 2, 3));
  CHECK(store.add("come", 1) == 1);
  std::string const bytes("\0\1\2", 3), large(launch::detail::most_store_bytes, 'x');
  store.set("id", bytes);
  store.set("large", large);
  asks.join();
  CHECK(early == bytes);
  CHECK(other.get("id") == bytes);
  CHECK(other.get("large") == large);
  CHECK(other.add("come", 41) == 42);
  CHECK(store.add("come", -2) == 40);
  store.set("id", "");
  CHECK(other.get("id").empty());
  CHECK_THROWS_WITH_AS(store.set("larger", large + "x"), doctest::Contains("at most 1048576"), ConfigError);
}

TEST_CASE("strangers are refused: another magic, version, run, place") {
  StoreServer const server({.job = 7, .size = 2, .silence_seconds = 0.2});
  constexpr auto magic = launch::detail::StoreHello::right_magic;
  CHECK(is_hung_up_on(server, "GET / HTTP/1.1\r\n\r\n"));
  CHECK(is_hung_up_on(server, hello_of(magic + 1, 2, 7)));
  CHECK(is_hung_up_on(server, ""));  // after a while
  CHECK_FALSE(is_hung_up_on(server, hello_of(magic, 3, 7)));
  CHECK_THROWS_WITH_AS(Store(to(server, 0, 2, 8)), doctest::Contains("of another run"), ConfigError);
  CHECK_THROWS_WITH_AS(Store(to(server, 2, 2)), doctest::Contains("rank 2 of 2 has no place among 2"), ConfigError);
  CHECK_THROWS_WITH_AS(Store(to(server, 0, 3)), doctest::Contains("rank 0 of 3"), ConfigError);
  Store first(to(server, 0, 2));
  CHECK_THROWS_WITH_AS(Store(to(server, 0, 2)), doctest::Contains("rank 0 has come already"), ConfigError);
  first.set("still", "here");
  CHECK(Store(to(server, 1, 2)).get("still") == "here");
}

TEST_CASE("a rank that ends without a word is lost to all who wait; what is there stays") {
  StoreServer const server({.job = 7, .size = 3});
  Store store(to(server, 0, 3));
  store.set("there", "yes");
  { Store const leaves(to(server, 2, 3)); }
  Store waits(to(server, 2, 3));  // its place is free again, and nobody was lost
  std::string message;
  int lost = -1;
  std::thread waiting([&] {
    try {
      (void)waits.get("never");
    } catch (RankLost const& error) {
      message = error.what();
      lost = error.rank();
    }
  });
  {
    auto const dies = connected_to(server);
    auto hello = hello_of(launch::detail::StoreHello::right_magic, launch::detail::StoreHello::right_version, 7, 1, 3);
    REQUIRE(::send(dies.get(), hello.data(), hello.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(hello.size()));
    launch::detail::StoreHead answer;
    REQUIRE(::recv(dies.get(), &answer, sizeof answer, MSG_WAITALL) == sizeof answer);  // it is in
  }
  waiting.join();
  CHECK(lost == 1);
  CHECK(message == "rank 1 is lost to the store: its connection has ended; rank 2 was waiting for 'never'");
  CHECK_THROWS_AS((void)store.get("never"), RankLost);
  CHECK(store.get("there") == "yes");
}

TEST_CASE("who waits too long for a value, or for a server, says for what") {
  StoreServer const server({.job = 7, .size = 1});
  auto options = to(server, 0, 1);
  options.wait_seconds = 0.05;
  Store store(options);
  CHECK_THROWS_WITH_AS((void)store.get("never"), doctest::Contains("in vain for 'never'"), CommunicationError);
  options.join_seconds = 0.05;
  options.port = 1;
  CHECK_THROWS_WITH_AS(Store{options}, doctest::Contains("has not found the store at localhost:1"), ConfigError);
}

TEST_CASE("a server that is gone is an error, not a wait") {
  auto server = std::make_unique<StoreServer>(StoreServer::Options{.job = 7, .size = 1});
  Store store(to(*server, 0, 1));
  server.reset();
  CHECK_THROWS_WITH_AS((void)store.get("x"), doctest::Contains("has lost the store"), CommunicationError);
}
