// SPDX-License-Identifier: Apache-2.0
// Both ends of a run's store, with damaged and foreign messages from the other end.
#include <lockstep/launch/store/store_server.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <thread>

#include <doctest/doctest.h>
#include <lockstep/core/mix.hpp>
#include <lockstep/core/philox.hpp>
#include <lockstep/launch/store/store.hpp>

#include "fuzz/mutated.hpp"

using namespace lockstep;
using namespace lockstep_test;
namespace wire = launch::detail;
using launch::Store;
using launch::StoreServer;

namespace {

constexpr std::uint64_t job = 7;
constexpr int ranks = 2;
constexpr std::uint64_t rounds = 1000;

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(port);
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return name;
}
FileDescriptor tcp_socket() { return FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)); }
void send_all(FileDescriptor const& file, std::string_view bytes) {
  while (!bytes.empty()) {
    auto const sent = ::send(file.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;  // the peer has closed the connection
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  ::shutdown(file.get(), SHUT_WR);
}
/// Reads until the peer closes the connection; returns false if it stays open.
bool drained(FileDescriptor const& file) {
  char buffer[4096];
  for (auto const deadline = deadline_in(20); wire::readable(file.get(), deadline);)
    if (::recv(file.get(), buffer, sizeof buffer, 0) <= 0) return true;
  return false;
}

std::string call(wire::StoreCall what, std::string_view key, std::string_view value, int members = 0) {
  return wire::store_message(static_cast<std::uint8_t>(what), key, value, members);
}
std::string reply(wire::StoreReply what, std::string_view key, std::string_view value, int rank = 0) {
  return wire::store_message(static_cast<std::uint8_t>(what), key, value, rank);
}
/// All requests of rank 1.
std::string calls() {
  wire::StoreHandshake handshake;
  handshake.rank = 1;
  handshake.size = ranks;
  handshake.job = job;
  wire::RankEnd const end{1, 0, "no disk"};
  return std::string(wire::as_bytes(handshake)) + call(wire::StoreCall::set, "name", "value") +
         call(wire::StoreCall::get, "name", {}) + call(wire::StoreCall::add, "sum", {"\1\0\0\0\0\0\0\0", 8}) +
         call(wire::StoreCall::gather, "all", "part", ranks) + call(wire::StoreCall::contributors, "all", {}) +
         call(wire::StoreCall::ended, {}, wire::as_bytes(end)) + call(wire::StoreCall::get, "never", {}) +
         call(wire::StoreCall::leave, {}, {});
}
/// All answers to rank 1, for a value and for gathered values.
std::string replies() {
  std::int32_t const first[]{0, 4}, second[]{1, 5};
  auto const gathered = std::string(wire::as_bytes(first)) + "part" + std::string(wire::as_bytes(second)) + "other";
  return reply(wire::StoreReply::done, {}, wire::StoreHandshake::acceptance()) +
         reply(wire::StoreReply::gathered, "all", gathered) + reply(wire::StoreReply::done, {}, "value") +
         reply(wire::StoreReply::lost, {}, "rank 0 is lost", 0);
}

}  // namespace

TEST_CASE("a store answers its ranks, whatever other messages it receives") {
  StoreServer const server({.job = job, .size = ranks});
  Store store(Store::Options{"localhost", server.port(), job, 0, ranks, 5, 5, 15});
  auto const name = loopback(server.port());
  for (std::uint64_t round = 0; round < rounds; ++round) {
    CAPTURE(round);
    auto const bytes = round == 0 ? calls() : mutated(calls(), Philox(mix(round)));
    auto const client = tcp_socket();
    REQUIRE(::connect(client.get(), reinterpret_cast<sockaddr const*>(&name), sizeof name) == 0);
    send_all(client, bytes);
    REQUIRE(drained(client));
    auto const text = std::to_string(round);
    store.set("round", text);
    REQUIRE(store.get("round") == text);
  }
  CHECK(store.get("name").size() >= 1);  // data of an authenticated rank
}

TEST_CASE("a rank gets an answer or an error, whatever a store sends") {
  auto const listening_socket = tcp_socket();
  auto name = loopback(0);
  socklen_t bytes = sizeof name;
  REQUIRE(::bind(listening_socket.get(), reinterpret_cast<sockaddr*>(&name), sizeof name) == 0);
  REQUIRE(::listen(listening_socket.get(), 8) == 0);
  REQUIRE(::getsockname(listening_socket.get(), reinterpret_cast<sockaddr*>(&name), &bytes) == 0);
  std::thread answers([&] {
    for (std::uint64_t round = 0; round < rounds; ++round) {
      FileDescriptor const client(::accept(listening_socket.get(), nullptr, nullptr));
      wire::StoreHandshake handshake;
      if (::recv(client.get(), &handshake, sizeof handshake, MSG_WAITALL) != sizeof handshake) continue;
      send_all(client, round == 0 ? replies() : mutated(replies(), Philox(mix(round))));
      static_cast<void>(drained(client));
    }
  });
  int served = 0, refused = 0;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    CAPTURE(round);
    try {
      Store store(Store::Options{"127.0.0.1", ntohs(name.sin_port), job, 1, ranks, 5, 5, 15});
      static_cast<void>(store.get("name"));
      std::size_t size = 0;
      static_cast<void>(store.gathered("all", [&](Store::Part part) {
        CHECK(part.rank < ranks);
        size += part.bytes.size();
      }));
      served += size == 9;
      CHECK((round > 0 || size == 9));
    } catch (Error const& error) {
      CHECK(std::string_view(error.what()).size() > 10);
      ++refused;
    }
  }
  answers.join();
  CHECK(served > 10);
  CHECK(refused > 100);
}
