// SPDX-License-Identifier: Apache-2.0
// Both ends of a run's store, and of the meeting of ranks on one host, with damaged and foreign messages from the other
// end. LOCKSTEP_FUZZ_ROUNDS sets the number of inputs for each, LOCKSTEP_FUZZ_SEED other inputs.
#include <lockstep/launch/store/store_server.hpp>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>

#include <doctest/doctest.h>
#include <lockstep/core/mix.hpp>
#include <lockstep/core/philox.hpp>
#include <lockstep/launch/run/detail/local_rendezvous.hpp>
#include <lockstep/launch/shared_memory/shared_segment.hpp>
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
std::string const secret(32, 's');
std::uint64_t number_of(char const* variable, std::uint64_t otherwise) {
  auto const* const text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}
std::uint64_t const rounds = number_of("LOCKSTEP_FUZZ_ROUNDS", 1000), seed = number_of("LOCKSTEP_FUZZ_SEED", 0);
Philox random_of(std::uint64_t round) { return Philox(mix((seed << 32) + round)); }

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
wire::StoreHandshake hello(wire::StoreConnectionKind kind) {
  wire::StoreHandshake handshake;
  handshake.rank = 1;
  handshake.size = ranks;
  handshake.job = job;
  handshake.kind = kind;
  return handshake;
}
/// All requests of rank 1 after its handshake.
std::string calls(wire::StoreConnectionKind kind) {
  wire::RankEnd const end{1, 0, "no disk"};
  if (kind == wire::StoreConnectionKind::notifications)
    return call(wire::StoreCall::ended, {}, wire::as_bytes(end)) + call(wire::StoreCall::leave, {}, {});
  return call(wire::StoreCall::set, "name", "value") + call(wire::StoreCall::get, "name", {}) +
         call(wire::StoreCall::add, "sum", {"\1\0\0\0\0\0\0\0", 8}) +
         call(wire::StoreCall::gather, "all", "part", ranks) + call(wire::StoreCall::contributors, "all", {}) +
         call(wire::StoreCall::get, "never", {}) + call(wire::StoreCall::leave, {}, {});
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
  for (auto const& with_secret : {std::string(), secret}) {
    CAPTURE(with_secret.empty());
    StoreServer const server({.job = job, .size = ranks, .secret = with_secret});
    Store store(Store::Options{.port = server.port(), .job = job, .size = ranks, .secret = with_secret});
    auto const name = loopback(server.port());
    for (std::uint64_t round = 0; round < rounds / 2; ++round) {
      CAPTURE(round);
      auto const kind = static_cast<wire::StoreConnectionKind>(round % 2);
      auto const handshake = hello(kind);
      auto const random = random_of(round);
      auto const client = tcp_socket();
      REQUIRE(::connect(client.get(), reinterpret_cast<sockaddr const*>(&name), sizeof name) == 0);
      std::string bytes(wire::as_bytes(handshake));
      if (!with_secret.empty() && round % 4 > 0) {  // a proof, perhaps damaged, needs the server's answer
        wire::StoreChallenge challenge;
        char head[sizeof(wire::StoreMessageHeader)];
        REQUIRE(::send(client.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == std::ssize(bytes));
        REQUIRE(::recv(client.get(), head, sizeof head, MSG_WAITALL) == sizeof head);
        REQUIRE(::recv(client.get(), &challenge, sizeof challenge, MSG_WAITALL) == sizeof challenge);
        auto const proof =
            wire::store_proof(secret, wire::StoreSide::client, handshake, challenge.nonce, server.port());
        bytes = call(wire::StoreCall::prove, {}, {reinterpret_cast<char const*>(proof.data()), proof.size()});
        if (round % 4 == 1) bytes = mutated(bytes, random);
      }
      auto const rest = calls(kind);
      if (round % 4 == 3)
        send_all(client, bytes + mutated(rest, random));  // of an authenticated rank
      else
        send_all(client, round < 2 ? bytes + rest : mutated(bytes + rest, random));
      REQUIRE(drained(client));
      auto const text = std::to_string(round);
      store.set("round", text);
      REQUIRE(store.get("round") == text);
    }
    CHECK(store.get("name").size() >= 1);  // data of an authenticated rank
  }
}

TEST_CASE("a rank gets an answer or an error, whatever a store sends") {
  auto const listening_socket = tcp_socket();
  auto name = loopback(0);
  socklen_t bytes = sizeof name;
  REQUIRE(::bind(listening_socket.get(), reinterpret_cast<sockaddr*>(&name), sizeof name) == 0);
  REQUIRE(::listen(listening_socket.get(), 8) == 0);
  REQUIRE(::getsockname(listening_socket.get(), reinterpret_cast<sockaddr*>(&name), &bytes) == 0);
  auto const port = ntohs(name.sin_port);
  std::thread answers([&] {
    for (std::uint64_t round = 0; round < rounds; ++round) {
      FileDescriptor const client(::accept(listening_socket.get(), nullptr, nullptr));
      wire::StoreHandshake handshake;
      if (::recv(client.get(), &handshake, sizeof handshake, MSG_WAITALL) != sizeof handshake) continue;
      std::string said;
      if (round % 2 == 1) {  // the rank has a secret
        wire::StoreChallenge challenge{};
        challenge.proof = wire::store_proof(secret, wire::StoreSide::server, handshake, challenge.nonce, port);
        said = reply(wire::StoreReply::challenge, {}, wire::as_bytes(challenge));
      }
      send_all(client, round < 2 ? said + replies() : mutated(said + replies(), random_of(round)));
      static_cast<void>(drained(client));
    }
  });
  int served = 0, refused = 0;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    CAPTURE(round);
    try {
      Store store(Store::Options{.host = "127.0.0.1",
                                 .port = port,
                                 .job = job,
                                 .rank = 1,
                                 .size = ranks,
                                 .join_seconds = 0,
                                 .wait_seconds = 5,
                                 .secret = round % 2 == 1 ? secret : std::string()});
      static_cast<void>(store.get("name"));
      std::size_t size = 0;
      static_cast<void>(store.gathered("all", [&](Store::Part part) {
        CHECK(part.rank < ranks);
        size += part.bytes.size();
      }));
      served += size == 9;
      CHECK((round > 1 || size == 9));
    } catch (Error const& error) {
      CHECK(std::string_view(error.what()).size() > 10);
      ++refused;
    }
  }
  answers.join();
  CHECK(served > 10);
  CHECK(refused > 100);
}

namespace {

std::string const key = "fuzz " + std::to_string(::getpid());
wire::LocalAddress meeting() {
  return wire::LocalAddress("lockstep-" + std::to_string(::geteuid()) + "-" +
                            std::to_string(mix(std::string_view(key))));
}
FileDescriptor local_socket() { return FileDescriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)); }

}  // namespace

TEST_CASE("ranks of one host meet, whatever other messages rank 0 receives") {
  using wire::LocalRendezvous;
  auto const segment = launch::SharedSegment::between_processes(3, job);
  LocalRendezvous first(key, 0, 3), second(key, 1, 3);
  std::vector<FileDescriptor> connected;
  std::thread accepting([&] { connected = first.accept_ranks(segment->descriptor(), job, 600); });
  LocalRendezvous::Handshake handshake;
  handshake.rank = 2;
  handshake.size = 3;
  std::string("another run").copy(handshake.key, sizeof handshake.key - 1);
  auto const address = meeting();
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    auto const client = local_socket();
    while (::connect(client.get(), address.get(), address.bytes) != 0) ::usleep(500);
    auto const bytes = mutated(std::string(wire::as_bytes(handshake)), random_of(round));
    static_cast<void>(::send(client.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
    if (round % 16 == 0) static_cast<void>(drained(client));
  }
  static_cast<void>(second.join(10));
  static_cast<void>(LocalRendezvous(key, 2, 3).join(10));
  accepting.join();
  CHECK(connected.size() == 3);
}

TEST_CASE("a rank of one host gets the memory or an error, whatever rank 0 sends") {
  using wire::LocalRendezvous;
  auto const listening_socket = local_socket();
  auto const address = meeting();
  REQUIRE(::bind(listening_socket.get(), address.get(), address.bytes) == 0);
  REQUIRE(::listen(listening_socket.get(), 8) == 0);
  auto const segment = launch::SharedSegment::between_processes(2, job);
  std::thread answers([&] {
    for (std::uint64_t round = 0; round < rounds; ++round) {
      FileDescriptor const client(::accept(listening_socket.get(), nullptr, nullptr));
      char handshake[sizeof(LocalRendezvous::Handshake)];
      static_cast<void>(::recv(client.get(), handshake, sizeof handshake, 0));
      LocalRendezvous::Reply reply;
      reply.job = job;
      if (round % 2 == 1) std::string("no\x1b").copy(reply.refusal, sizeof reply.refusal);
      std::string bytes(wire::as_bytes(reply));
      if (round > 1) bytes = mutated(bytes, random_of(round));
      // Also no descriptor, two, and one of other memory.
      int const files[]{segment->descriptor(), listening_socket.get()};
      std::size_t const count = round < 2 ? 1 : round % 3;
      iovec part{bytes.data(), bytes.size()};
      alignas(cmsghdr) char control[CMSG_SPACE(sizeof files)] = {};
      msghdr message{};
      message.msg_iov = &part;
      message.msg_iovlen = 1;
      if (count > 0) {
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        auto* const head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(count * sizeof(int));
        std::memcpy(CMSG_DATA(head), files + (round % 5 == 4 && count == 1 ? 1 : 0), count * sizeof(int));
      }
      static_cast<void>(::sendmsg(client.get(), &message, MSG_NOSIGNAL));
    }
  });
  int joined = 0, refused = 0;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    CAPTURE(round);
    try {
      auto got = LocalRendezvous(key, 1, 2).join(10);
      auto const attached = launch::SharedSegment::attach(got.memory.get(), 2, got.job);
      got.memory.release();
      joined += attached->control().head.job == job;
    } catch (Error const& error) {
      CHECK(std::string_view(error.what()).find('\x1b') == std::string_view::npos);
      ++refused;
    }
  }
  answers.join();
  CHECK(joined > 10);
  CHECK(refused > 100);
}
