// SPDX-License-Identifier: Apache-2.0
#include <lockstep/launch/store/store.hpp>

#include <doctest/doctest.h>

#include <lockstep/launch/store/store_server.hpp>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace lockstep;
using launch::Store;
using launch::StoreServer;
using launch::detail::StoreCall;
using launch::detail::StoreConnection;
using launch::detail::StoreConnectionKind;
using launch::detail::StoreReply;

namespace {

Store::Options to(StoreServer const& server, int rank, int size, std::uint64_t job = 7) {
  return {"localhost", server.port(), job, rank, size, 5, 5, 4};
}

FileDescriptor connected_to(StoreServer const& server) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(server.port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  FileDescriptor file(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(::connect(file.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  return file;
}

/// Connects and writes these bytes; returns whether the server closes the connection without an answer.
bool is_hung_up_on(StoreServer const& server, std::string const& bytes) {
  auto const file = connected_to(server);
  REQUIRE(::send(file.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
  char answer = 0;
  return ::recv(file.get(), &answer, 1, 0) <= 0;
}

std::string hello_of(std::uint64_t magic, std::uint32_t version, std::uint64_t job, int rank = 0, int size = 2) {
  launch::detail::StoreHandshake handshake;
  handshake.magic = magic;
  handshake.version = version;
  handshake.job = job;
  handshake.rank = rank;
  handshake.size = size;
  return {reinterpret_cast<char const*>(&handshake), sizeof handshake};
}

/// "1 ended, 2 lost, ": the content of a news line until it names this rank.
std::string notifications_until(StoreConnection& connection, int rank) {
  std::string out;
  for (int last = -1; last != rank;) {
    auto const message = connection.wait(deadline_in(5));
    REQUIRE(message);
    last = message->rank;
    out += std::to_string(last) + (message->type == StoreReply::rank_ended ? " ended, " : " lost, ");
  }
  return out;
}
void end(StoreConnection& connection, int exit_code) {
  connection.send(StoreCall::ended, {}, launch::detail::as_bytes(launch::detail::RankEnd{exit_code, 0, "no disk"}));
}

/// Listens at a store's possible address.
struct OtherServer {
  FileDescriptor listening_socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};

  OtherServer() {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::bind(listening_socket.get(), reinterpret_cast<sockaddr*>(&name), sizeof name) == 0);
    REQUIRE(::listen(listening_socket.get(), 1) == 0);
  }
  [[nodiscard]] std::uint16_t port() const {
    sockaddr_in name{};
    socklen_t bytes = sizeof name;
    REQUIRE(::getsockname(listening_socket.get(), reinterpret_cast<sockaddr*>(&name), &bytes) == 0);
    return ntohs(name.sin_port);
  }
};

/// The descriptor of this process that is the other end of a connection.
int other_end_of(int file) {
  sockaddr_storage mine{}, theirs{};
  socklen_t bytes = sizeof mine;
  REQUIRE(::getsockname(file, reinterpret_cast<sockaddr*>(&mine), &bytes) == 0);
  auto const port_of = [](sockaddr_storage const& name) {
    return reinterpret_cast<sockaddr_in6 const&>(name).sin6_port;  // at the place of an IPv4 address, too
  };
  for (int other = 0; other < 1024; ++other) {
    bytes = sizeof theirs;
    if (::getpeername(other, reinterpret_cast<sockaddr*>(&theirs), &bytes) == 0 && port_of(theirs) == port_of(mine))
      return other;
  }
  return -1;
}
int option_of(int file, int level, int name) {
  int value = -1;
  socklen_t bytes = sizeof value;
  REQUIRE(::getsockopt(file, level, name, &value, &bytes) == 0);
  return value;
}

}  // namespace

TEST_CASE("a rank's value reaches all ranks, also those that requested it before") {
  StoreServer const server({.job = 7, .size = 3});
  std::string early;
  std::thread asks([&] { early = Store(to(server, 1, 3)).get("id"); });
  Store store(to(server, 0, 3)), other(to(server, 2, 3));
  CHECK(store.add("come", 1) == 1);
  std::string const bytes("\0\1\2", 3), large(launch::detail::max_store_bytes, 'x');
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

TEST_CASE("peers with another magic, version, run or rank are refused") {
  StoreServer const server({.job = 7, .size = 2, .silence_seconds = 0.2});
  constexpr auto magic = launch::detail::StoreHandshake::expected_magic;
  CHECK(is_hung_up_on(server, "GET / HTTP/1.1\r\n\r\n"));
  CHECK(is_hung_up_on(server, hello_of(magic + 1, 2, 7)));
  CHECK(is_hung_up_on(server, ""));  // after a while
  CHECK_FALSE(is_hung_up_on(server, hello_of(magic, 3, 7)));
  CHECK_THROWS_WITH_AS(Store(to(server, 0, 2, 8)), doctest::Contains("to another run"), ConfigError);
  CHECK_THROWS_WITH_AS(Store(to(server, 2, 2)), doctest::Contains("rank 2 of 2 cannot join a run of 2 ranks"),
                       ConfigError);
  CHECK_THROWS_WITH_AS(Store(to(server, 0, 3)), doctest::Contains("rank 0 of 3"), ConfigError);
  Store first(to(server, 0, 2));
  CHECK_THROWS_WITH_AS(Store(to(server, 0, 2)), doctest::Contains("rank 0 has joined already"), ConfigError);
  first.set("still", "here");
  CHECK(Store(to(server, 1, 2)).get("still") == "here");
}

TEST_CASE("a rank that disconnects without a message is lost to all that wait; its values remain") {
  StoreServer const server({.job = 7, .size = 3});
  Store store(to(server, 0, 3));
  store.set("there", "yes");
  { Store const leaves(to(server, 2, 3)); }
  Store waits(to(server, 2, 3));  // its place is free again, and no rank was lost
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
    auto handshake = hello_of(launch::detail::StoreHandshake::expected_magic,
                              launch::detail::StoreHandshake::expected_version, 7, 1, 3);
    REQUIRE(::send(dies.get(), handshake.data(), handshake.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(handshake.size()));
    char answer[sizeof(launch::detail::StoreMessageHeader) + sizeof(std::uint64_t)];
    REQUIRE(::recv(dies.get(), answer, sizeof answer, MSG_WAITALL) == sizeof answer);  // it is in
  }
  waiting.join();
  CHECK(lost == 1);
  CHECK(message == "rank 1 lost its connection to the store: its connection has ended; rank 2 was waiting for 'never'");
  CHECK_THROWS_AS((void)store.get("never"), RankLost);
  CHECK(store.get("there") == "yes");
}

TEST_CASE("waiting ranks are notified of a lost rank") {
  StoreServer const server({.job = 7, .size = 2});
  StoreConnection waits(to(server, 0, 2), StoreConnectionKind::requests);
  waits.send(StoreCall::get, "never", {});
  CHECK_FALSE(waits.wait(deadline_in(0.1)));  // so the server knows that it waits
  { StoreConnection const dies(to(server, 1, 2), StoreConnectionKind::requests); }
  auto const reported = waits.wait(deadline_in(5));
  REQUIRE(reported);
  CHECK(reported->type == StoreReply::lost);
  CHECK(reported->rank == 1);
}

TEST_CASE("a timeout for a value or for a server names what was missing") {
  StoreServer const server({.job = 7, .size = 1});
  auto options = to(server, 0, 1);
  options.wait_seconds = 0.05;
  Store store(options);
  CHECK_THROWS_WITH_AS((void)store.get("never"), doctest::Contains("received no 'never' in time"), CommunicationError);
  options.join_seconds = 0.05;
  options.port = 1;
  CHECK_THROWS_WITH_AS(Store{options}, doctest::Contains("has not found the store at localhost:1"), ConfigError);
}

TEST_CASE("the answer to a request that was given up answers no later request") {
  StoreServer const server({.job = 7, .size = 2});
  auto options = to(server, 0, 2);
  options.wait_seconds = 0.05;
  Store impatient(options), other(to(server, 1, 2));
  CHECK_THROWS_AS((void)impatient.get("late"), CommunicationError);
  SUBCASE("the value comes before the next request") {
    other.set("late", "late value");
    other.set("next", "next value");
    CHECK(impatient.get("next") == "next value");
  }
  SUBCASE("the next request sets the value") {
    impatient.set("late", "own value");
    CHECK(impatient.add("sum", 5) == 5);
  }
  SUBCASE("the next requests are given up, too") {
    CHECK_THROWS_AS((void)impatient.get("later"), CommunicationError);
    other.set("late", "late value");
    other.set("later", "later value");
    CHECK(impatient.get("later") == "later value");
  }
  CHECK(impatient.add("number", 1) == 1);
  CHECK(other.add("number", 1) == 2);
}

TEST_CASE("a server that is gone is an error, not a wait") {
  auto server = std::make_unique<StoreServer>(StoreServer::Options{.job = 7, .size = 1});
  Store store(to(*server, 0, 1));
  server.reset();
  CHECK_THROWS_WITH_AS((void)store.get("x"), doctest::Contains("has lost the store"), CommunicationError);
}

TEST_CASE("a server that does not read for a while is waited for, up to a limit") {
  for (bool const reads : {true, false}) {
    CAPTURE(reads);
    OtherServer const other;
    std::size_t taken = 0;
    std::thread server([&] {
      FileDescriptor const peer(::accept(other.listening_socket.get(), nullptr, nullptr));
      auto const acceptance = launch::detail::store_message(static_cast<std::uint8_t>(StoreReply::done), {},
                                                            launch::detail::StoreHandshake::acceptance());
      (void)::send(peer.get(), acceptance.data(), acceptance.size(), MSG_NOSIGNAL);
      ::usleep(400'000);
      std::vector<char> buffer(1 << 20);
      for (ssize_t got = 1; reads && got > 0; taken += static_cast<std::size_t>(got))
        got = ::recv(peer.get(), buffer.data(), buffer.size(), 0);
    });
    {
      Store store({"127.0.0.1", other.port(), 7, 0, 1, 5, reads ? 5 : 0.2, 0.1});
      std::string const large(launch::detail::max_store_bytes, 'x');
      auto const give = [&] {
        for (int i = 0; i < 16; ++i) store.contribute("large", large, 1);
      };
      if (reads)
        CHECK_NOTHROW(give());
      else
        CHECK_THROWS_WITH_AS(give(), doctest::Contains("has lost the store"), CommunicationError);
    }
    server.join();
    if (reads) CHECK(taken > 16 * launch::detail::max_store_bytes);
  }
}

TEST_CASE("nothing follows a message that was sent in part") {
  OtherServer const other;
  std::atomic<bool> continues{false};
  std::string taken;
  std::thread server([&] {
    FileDescriptor const peer(::accept(other.listening_socket.get(), nullptr, nullptr));
    auto const acceptance = launch::detail::store_message(static_cast<std::uint8_t>(StoreReply::done), {},
                                                          launch::detail::StoreHandshake::acceptance());
    (void)::send(peer.get(), acceptance.data(), acceptance.size(), MSG_NOSIGNAL);
    while (!continues) ::usleep(1000);
    char buffer[16384];
    for (ssize_t got = 1; got > 0; taken.append(buffer, static_cast<std::size_t>(std::max<ssize_t>(got, 0))))
      got = ::recv(peer.get(), buffer, sizeof buffer, 0);
  });
  {
    Store store({"127.0.0.1", other.port(), 7, 0, 1, 5, 0.2, 2});
    std::string const large(launch::detail::max_store_bytes, 'x');
    auto const give = [&] {
      for (int i = 0; i < 64; ++i) store.contribute("large", large, 1);
    };
    CHECK_THROWS_WITH_AS(give(), doctest::Contains("it accepts nothing"), CommunicationError);
    continues = true;
    ::usleep(50'000);
    CHECK_THROWS_WITH_AS(store.set("name", "value"), doctest::Contains("has lost the store"), CommunicationError);
  }
  server.join();
  CHECK(taken.find("name") == std::string::npos);
  CHECK(taken.find('x') != std::string::npos);
}

TEST_CASE("a stopped server does not name missing ranks; its later messages answer no other request") {
  OtherServer const other;
  std::atomic<bool> goes_on{false};
  std::thread server([&] {
    FileDescriptor const peer(::accept(other.listening_socket.get(), nullptr, nullptr));
    auto const say = [&](StoreReply what, std::string_view key, std::string_view value) {
      auto const message = launch::detail::store_message(static_cast<std::uint8_t>(what), key, value);
      (void)::send(peer.get(), message.data(), message.size(), MSG_NOSIGNAL);
    };
    say(StoreReply::done, {}, launch::detail::StoreHandshake::acceptance());
    while (!goes_on) ::usleep(1000);
    say(StoreReply::done, {}, std::string(sizeof(int), '\0'));  // to the query for missing ranks
    say(StoreReply::gathered, "sum", {});
    say(StoreReply::done, {}, "value");
    char last = 0;
    while (::recv(peer.get(), &last, 1, 0) > 0) continue;
  });
  {
    Store store({"127.0.0.1", other.port(), 7, 1, 2, 5, 5, 0.2});
    int const members[]{0, 1};
    auto const began = Clock::seconds();
    CHECK_FALSE(store.missing("sum", members, [] { return false; }));
    CHECK(Clock::seconds() - began < 4);
    goes_on = true;
    CHECK(store.get("name") == "value");
    CHECK(store.gathered("sum", [](Store::Part) {}));
  }
  server.join();
}

TEST_CASE("a rank that is busy for longer than the silence limit is not lost") {
  StoreServer const server({.job = 7, .size = 1, .silence_seconds = 0.2});
  Store busy(to(server, 0, 1));
  std::string const large(launch::detail::max_store_bytes, 'x');
  for (char const* name : {"a", "b", "c", "d"}) busy.contribute(name, large, 1);
  ::usleep(1'200'000);
  for (char const* name : {"a", "b", "c", "d"}) {
    std::size_t bytes = 0;
    while (!busy.gathered(name, [&](Store::Part part) { bytes = part.bytes.size(); }))
      REQUIRE(launch::detail::readable(busy.descriptor(), deadline_in(5)));
    CHECK(bytes == large.size());
  }
}

TEST_CASE("the system's keep-alive watches the other host, at both ends, also on idle news lines") {
  StoreServer const server({.job = 7, .size = 1, .silence_seconds = 3});
  Store const calls(to(server, 0, 1));
  StoreConnection notifications(to(server, 0, 1), StoreConnectionKind::notifications);
  for (int const file : {calls.descriptor(), notifications.descriptor()})
    for (int const end : {file, other_end_of(file)}) {
      REQUIRE(end >= 0);
      CHECK(option_of(end, SOL_SOCKET, SO_KEEPALIVE) == 1);
      CHECK(option_of(end, IPPROTO_TCP, TCP_KEEPIDLE) == 1);
      CHECK(option_of(end, IPPROTO_TCP, TCP_KEEPCNT) == (end == file ? 2 : 1));
      CHECK(option_of(end, IPPROTO_TCP, TCP_NODELAY) == 1);
      CHECK(option_of(end, IPPROTO_TCP, TCP_USER_TIMEOUT) == (file == calls.descriptor() ? 0
                                                              : end == file              ? 4000
                                                                                         : 3000));
    }
}

TEST_CASE("for a long allowed absence the number of keep-alive probes stays within the system's limit") {
  StoreServer const server({.job = 7, .size = 3});
  int rank = 0;
  for (double const seconds : {2.0, 15.0, 3600.0}) {
    auto address = to(server, rank++, 3);
    address.silence_seconds = seconds;
    StoreConnection notifications(address, StoreConnectionKind::notifications);
    auto const option = [&](int name) { return option_of(notifications.descriptor(), IPPROTO_TCP, name); };
    auto const last = option(TCP_KEEPIDLE) + option(TCP_KEEPINTVL) * option(TCP_KEEPCNT);
    CHECK(last <= seconds);
    CHECK(last >= 0.8 * seconds - 2);
    CHECK(option(TCP_USER_TIMEOUT) == static_cast<int>(1000 * seconds));
  }
}

TEST_CASE("news name every rank that ended or is lost once, also earlier ones, but not the receiver") {
  StoreServer const server({.job = 7, .size = 4});
  {
    Store const calls(to(server, 1, 4));
    StoreConnection connection(to(server, 1, 4), StoreConnectionKind::notifications);
    end(connection, 0);
  }  // the later end of its line is not news
  StoreConnection notifications(to(server, 0, 4), StoreConnectionKind::notifications);
  {
    auto options = to(server, 0, 4);
    options.wait_seconds = 0.05;
    CHECK_THROWS_WITH_AS((void)Store(options).get("never"), doctest::Contains("received no 'never' in time"),
                         CommunicationError);
  }  // it is not lost to waiting ranks, either
  CHECK_THROWS_WITH_AS(StoreConnection(to(server, 0, 4), StoreConnectionKind::notifications),
                       doctest::Contains("rank 0 has joined already"), ConfigError);
  {
    StoreConnection const both[] = {{to(server, 2, 4), StoreConnectionKind::notifications},
                                    {to(server, 2, 4), StoreConnectionKind::requests}};
  }  // lost twice, reported once
  StoreConnection last(to(server, 3, 4), StoreConnectionKind::notifications);
  end(notifications, 0);
  CHECK(notifications_until(last, 0) == "1 ended, 2 lost, 0 ended, ");
  end(last, 0);
  CHECK(notifications_until(notifications, 3) == "1 ended, 2 lost, 3 ended, ");
}

TEST_CASE("no rank waits for the end of a rank after one of its two lines has broken") {
  StoreServer const server({.job = 7, .size = 3});
  StoreConnection const calls(to(server, 1, 3), StoreConnectionKind::requests);
  { StoreConnection notifications(to(server, 1, 3), StoreConnectionKind::notifications); }
  StoreConnection last(to(server, 2, 3), StoreConnectionKind::notifications);
  CHECK(notifications_until(last, 1) == "1 lost, ");
  end(last, 0);
  auto const begin = Clock::seconds();
  server.wait_for_ends(20);
  CHECK(Clock::seconds() - begin < 10);
}

TEST_CASE("a rank that waits for a value is notified of the first failed rank") {
  StoreServer const server({.job = 7, .size = 3});
  StoreConnection first(to(server, 1, 3), StoreConnectionKind::notifications),
      second(to(server, 2, 3), StoreConnectionKind::notifications);
  StoreConnection notifications(to(server, 0, 3), StoreConnectionKind::notifications);
  Store store(to(server, 0, 3));
  end(first, 3);
  CHECK(notifications_until(notifications, 1) == "1 ended, ");
  end(second, 4);
  CHECK(notifications_until(notifications, 2) == "2 ended, ");
  CHECK_THROWS_WITH_AS((void)store.get("never"),
                       doctest::Contains("rank 1 has failed: no disk; rank 0 was waiting for 'never'"), RankLost);
}

TEST_CASE("values that ranks give under a name are gathered by rank; then the name is free again") {
  StoreServer const server({.job = 7, .size = 3});
  Store store(to(server, 0, 3)), other(to(server, 2, 3));
  StoreConnection notifications(to(server, 0, 3), StoreConnectionKind::notifications);
  int const members[] = {2, 1, 0};
  auto const missing = [&] { return store.missing("x", members, [] { return false; }).value(); };
  for (std::string const more : {"", "!"}) {
    store.contribute("x", "a" + more, 2);
    CHECK(missing() == std::vector{2, 1});
    std::string all;
    auto const take = [&](Store::Part part) { all += std::to_string(part.rank) += part.bytes; };
    CHECK_FALSE(store.gathered("x", take));
    other.contribute("x", "b" + more, 2);
    while (!other.gathered("x", take)) REQUIRE(launch::detail::readable(other.descriptor(), deadline_in(5)));
    CHECK(missing().empty());
    CHECK(store.gathered("x", take));
    CHECK_FALSE(store.gathered("x", take));
    CHECK(all == "0a" + more + "2b" + more + "0a" + more + "2b" + more);
  }
  CHECK_FALSE(notifications.next());
}

TEST_CASE("a rank can contribute although it has not read the answers to many contributions") {
  auto const name = "unread " + std::to_string(::getpid());
  StoreServer const server({.job = 7, .size = 2, .silence_seconds = 4, .local_name = name});
  auto const at = [&](int rank) {
    auto options = to(server, rank, 2);
    options.local_name = name;
    return options;
  };
  Store one(at(0)), other(at(1));
  constexpr int count = 80, more = 4;  // more than the server keeps for a rank that does not read
  std::string const part(std::size_t{512} << 10, 'x');
  auto const key = [](int i) { return "gather " + std::to_string(i); };
  bool is_stuck = false;
  auto const await = [&](auto const& done) {
    auto const until = deadline_in(10);
    while (!done() && !is_stuck) {
      is_stuck = Clock::nanoseconds() > until;
      ::usleep(100);
    }
  };
  int parts = 0;
  auto const read = [&](Store& store, int i) {
    while (!store.gathered(key(i), [&](Store::Part const&) { ++parts; })) ::usleep(100);
  };
  for (int i = 0; i < count; ++i) one.contribute(key(i), part, 2, await);
  for (int i = 0; i < count; ++i) {
    other.contribute(key(i), part, 2, await);
    read(other, i);
  }
  for (int i = count; i < count + more && !is_stuck; ++i) one.contribute(key(i), part, 2, await);
  CHECK_FALSE(is_stuck);
  for (int i = 0; i < count; ++i) read(one, i);
  CHECK(parts == 4 * count);
}

TEST_CASE("too long messages and invalid ones close the connection") {
  StoreServer const server({.job = 7, .size = 2});
  StoreConnection notifications(to(server, 0, 2), StoreConnectionKind::notifications);
  for (bool const known : {true, false}) {
    CAPTURE(known);
    StoreConnection connection(to(server, 1, 2), StoreConnectionKind::requests);
    launch::detail::StoreMessageHeader header;
    header.type = known ? 1 : 99;
    header.value_bytes = known ? launch::detail::max_store_bytes + 1 : 0;
    connection.send(launch::detail::as_bytes(header));
    CHECK_THROWS_WITH_AS((void)connection.wait(deadline_in(5)), doctest::Contains("has lost the store"),
                         CommunicationError);
  }
  CHECK(notifications_until(notifications, 1) == "1 lost, ");
}

TEST_CASE("an unterminated text of a rank is terminated") {
  std::string const bytes(4000, 'x');
  CHECK(std::string_view(launch::detail::from_bytes<launch::detail::RankEnd>(bytes).message) ==
        std::string(sizeof(launch::detail::RankEnd::message) - 1, 'x'));
  CHECK(std::string_view(launch::detail::from_bytes<launch::detail::RankArrival>(bytes).host) ==
        std::string(sizeof(launch::detail::RankArrival::host) - 1, 'x'));
  CHECK(std::string_view(launch::detail::from_bytes<launch::detail::RankEnd>(bytes.substr(0, 10)).message) == "xx");
}

TEST_CASE("an address that does not answer is distinguished from a store that was never opened") {
  OtherServer const silent;
  CHECK_THROWS_WITH_AS(Store({"127.0.0.1", silent.port(), 7, 1, 2, 0.1, 5, 0.1}),
                       doctest::Contains("has not answered rank 1; it is another program"), ConfigError);
}

TEST_CASE("a client that the system connects to itself has found no store, and leaves the port free") {
  FileDescriptor const file(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof name;
  REQUIRE(::bind(file.get(), reinterpret_cast<sockaddr*>(&name), bytes) == 0);
  REQUIRE(::getsockname(file.get(), reinterpret_cast<sockaddr*>(&name), &bytes) == 0);
  REQUIRE(::connect(file.get(), reinterpret_cast<sockaddr*>(&name), bytes) == 0);
  CHECK(launch::detail::is_connected_to_itself(file));
  StoreServer const server({.job = 7, .size = 1});
  CHECK_FALSE(launch::detail::is_connected_to_itself(connected_to(server)));

  // Connects often to a port where nothing listens, and returns whether it is free afterwards. The system gives even
  // ports to clients first, and odd ones to servers.
  auto const remains_free = [] {
    std::uint16_t port = 0;
    while (port == 0) {
      auto const even = static_cast<std::uint16_t>(StoreServer({.job = 7, .host = "127.0.0.1"}).port() & ~1);
      try {
        port = StoreServer({.job = 7, .port = even, .host = "127.0.0.1"}).port();
      } catch (ConfigError const&) {  // in use
      }
    }
    for (int i = 0; i < 20'000; ++i) {  // the system tries all source ports within some thousand connections
      try {
        StoreConnection const connection({"127.0.0.1", port, 7, 0, 1, 0}, StoreConnectionKind::requests, 0);
      } catch (ConfigError const& error) {
        if (std::string(error.what()).find("Connection refused") == std::string::npos) return false;
      }
    }
    try {
      return StoreServer({.job = 7, .size = 1, .port = port, .host = "127.0.0.1"}).port() == port;
    } catch (ConfigError const&) {
      return false;
    }
  };
  // Another program may take the port in the meantime, but hardly three ports in succession.
  CHECK((remains_free() || remains_free() || remains_free()));
}

TEST_CASE("answers of another service are refused, and unknown host names are reported") {
  OtherServer const other;
  std::thread server([&] {
    FileDescriptor const peer(::accept(other.listening_socket.get(), nullptr, nullptr));
    (void)::send(peer.get(), "220 smtp.example.org ready\r\n", 28, MSG_NOSIGNAL);
  });
  CHECK_THROWS_WITH_AS(Store({"127.0.0.1", other.port(), 7, 0, 1, 5, 5, 4}), doctest::Contains("is not a store"),
                       ConfigError);
  server.join();
  CHECK_THROWS_WITH_AS(Store({"no such host", 1, 7, 0, 1, 0, 5, 4}),
                       doctest::Contains(("(" + std::string(::gai_strerror(EAI_NONAME)) + ")").c_str()), ConfigError);
}
