// SPDX-License-Identifier: Apache-2.0
// Strangers on the loopback interface, and ranks that send what they should not. LOCKSTEP_ATTACK_RUNS repeats each
// attack on a run that often; 1,000 in ./dev check attacks.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <lockstep/comm/store/store_communicator.hpp>
#include <lockstep/launch/run/run.hpp>
#include <lockstep/launch/store/store.hpp>
#include <lockstep/launch/store/store_server.hpp>

#include "sanitized.hpp"

using namespace lockstep;
namespace wire = launch::detail;
using launch::Store;
using launch::StoreServer;
using wire::LocalRendezvous;
using wire::StoreCall;
using wire::StoreConnection;
using wire::StoreConnectionKind;
using wire::StoreReply;

namespace {

std::string const secret(64, 's');
constexpr std::uint64_t job = 7;

int runs() {
  auto const* const text = std::getenv("LOCKSTEP_ATTACK_RUNS");
  return text ? std::atoi(text) : 3;
}
bool is_long() { return std::getenv("LOCKSTEP_ATTACK_RUNS") != nullptr; }

double seconds_of(std::function<void()> const& work) {
  auto const began = Clock::seconds();
  work();
  return Clock::seconds() - began;
}
template <class Work>
std::string message_of(Work const& work) {
  try {
    work();
  } catch (std::exception const& error) {
    return error.what();
  }
  return {};
}
bool contains(std::string const& text, std::string_view part) { return text.find(part) != std::string::npos; }

StoreServer::Options serving(int size, std::string const& with_secret = secret) {
  return {.job = job, .size = size, .silence_seconds = 5, .secret = with_secret};
}
wire::StoreAddress to(StoreServer const& server, int rank, int size, std::string const& with_secret = secret) {
  return {.host = "127.0.0.1",
          .port = server.port(),
          .job = job,
          .rank = rank,
          .size = size,
          .join_seconds = 5,
          .wait_seconds = 5,
          .silence_seconds = 5,
          .secret = with_secret};
}

FileDescriptor connected_to(std::uint16_t port) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(port);
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  FileDescriptor file(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  timeval const limit{5, 0};
  ::setsockopt(file.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  if (::connect(file.get(), reinterpret_cast<sockaddr*>(&name), sizeof name) != 0) return FileDescriptor();
  return file;
}
void send_all(FileDescriptor const& file, std::string_view bytes) {
  (void)::send(file.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}
std::string received(FileDescriptor const& file, std::size_t bytes) {
  std::string out(bytes, '\0');
  auto const got = ::recv(file.get(), out.data(), out.size(), MSG_WAITALL);
  out.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return out;
}
std::string call(StoreCall what, std::string_view key, std::string_view value, int members = 0) {
  return wire::store_message(static_cast<std::uint8_t>(what), key, value, members);
}

/// A stranger knows all but the secret.
wire::StoreHandshake hello(int rank, int size, StoreConnectionKind kind = StoreConnectionKind::requests) {
  wire::StoreHandshake out;
  out.rank = rank;
  out.size = size;
  out.job = job;
  out.kind = kind;
  return out;
}
/// Returns the server's challenge to a handshake.
wire::StoreChallenge challenge_to(FileDescriptor const& file, wire::StoreHandshake const& handshake) {
  send_all(file, wire::as_bytes(handshake));
  auto const text = received(file, sizeof(wire::StoreMessageHeader) + sizeof(wire::StoreChallenge));
  wire::StoreChallenge out{};
  REQUIRE(text.size() == sizeof(wire::StoreMessageHeader) + sizeof out);
  std::memcpy(&out, text.data() + sizeof(wire::StoreMessageHeader), sizeof out);
  return out;
}
std::string proving(Sha256::Digest const& proof) {
  return call(StoreCall::prove, {}, {reinterpret_cast<char const*>(proof.data()), proof.size()});
}

/// The attacks of one stranger on a running job of two ranks: each opens a few connections.
void attack(std::uint16_t port, wire::StoreHandshake const& earlier, Sha256::Digest const& earlier_proof) {
  float const poison = 5'000'000;
  std::string const end(wire::as_bytes(wire::RankEnd{1, 0, "\x1b[2Jno disk"}));
  auto const calls = call(StoreCall::gather, "all/0/0", wire::as_bytes(poison), 2) +
                     call(StoreCall::set, "name", "poison") + call(StoreCall::ended, {}, end);
  for (int const kind : {0, 1, 7}) {
    auto const handshake = hello(1, 2, static_cast<StoreConnectionKind>(kind));
    {  // what was enough before there was a secret
      auto const file = connected_to(port);
      send_all(file, std::string(wire::as_bytes(handshake)) + calls);
    }
    if (kind == 7) continue;
    auto const file = connected_to(port), mirror = connected_to(port), replay = connected_to(port);
    auto const challenge = challenge_to(file, handshake);
    send_all(file, proving(wire::store_proof("a guess, 32 bytes or more in all", wire::StoreSide::client, handshake,
                                             challenge.nonce, port)) +
                       calls);
    send_all(mirror, proving(challenge_to(mirror, handshake).proof) + calls);
    (void)challenge_to(replay, earlier);
    send_all(replay, proving(earlier_proof) + calls);
    for (auto const* one : {&file, &mirror, &replay}) {
      auto const text = received(*one, 4096);
      CHECK(contains(text, "does not know this run's secret"));
      CHECK_FALSE(contains(text, wire::StoreHandshake::acceptance()));
    }
  }
}

double processor_time() {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}
long resident_bytes() {
  long resident = 0;
  if (auto* const file = std::fopen("/proc/self/statm", "re")) {
    if (std::fscanf(file, "%*d %ld", &resident) != 1) resident = 0;
    std::fclose(file);
  }
  return resident * ::sysconf(_SC_PAGESIZE);
}

/// A process of its own, with descriptors of its own, that connects often and sends nothing.
class Flood {
 public:
  Flood(std::uint16_t port, int connections) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_port = htons(port);
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ != 0) return;
    for (int i = 0; i < connections; ++i) {  // only system calls: the process has threads
      int const file = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
      if (file < 0) break;
      ::connect(file, reinterpret_cast<sockaddr*>(&name), sizeof name);
      if (i % 64 == 0) ::usleep(1000);
    }
    for (int i = 0; i < 20; ++i) ::usleep(500'000);
    ::_exit(0);
  }
  Flood(Flood const&) = delete;
  Flood& operator=(Flood const&) = delete;
  ~Flood() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_;
};

int open_files() {
  int count = 0;
  for (int file = 0; file < 4096; ++file) count += ::fcntl(file, F_GETFD) != -1;
  return count;
}

void add_up(launch::World const& world, std::vector<float>& data) {
  comm::StoreCommunicator communicator(world);
  comm::CollectiveOperation operation{.data = data.data(), .count = std::ssize(data)};
  communicator.start(operation);
  communicator.finish();
}

/// Adds up floats on two ranks that a store connects, one of which is slow; the sum is 180.
void train(launch::World const& world, std::vector<float>& data) {
  for (auto& x : data) x = world.rank == 0 ? 80.F : 100.F;
  if (world.rank == 1) ::usleep(20'000);
  add_up(world, data);
}

}  // namespace

TEST_CASE("an unauthenticated peer is not let in, poisons no sum, ends no run, and blames no rank") {
  auto const before = resident_bytes();
  int failures = 0;
  for (int run = 0; run < runs(); ++run) {
    StoreServer const server(serving(2));
    // A proof that the stranger has seen before: of another connection.
    auto const earlier = hello(1, 2);
    Sha256::Digest earlier_proof{};
    {
      auto const file = connected_to(server.port());
      auto const challenge = challenge_to(file, earlier);
      earlier_proof = wire::store_proof(secret, wire::StoreSide::client, earlier, challenge.nonce, server.port());
    }
    StoreConnection notifications(to(server, 0, 2), StoreConnectionKind::notifications);
    std::atomic<bool> over = false;
    std::thread stranger([&] {
      do attack(server.port(), earlier, earlier_proof);
      while (!over);
    });
    std::vector<std::thread> ranks;
    std::vector<float> data[2] = {std::vector<float>(50'000), std::vector<float>(50'000)};
    std::string errors[2];
    for (int const rank : {0, 1})
      ranks.emplace_back([&, rank] {
        errors[rank] = message_of([&] {
          launch::World world{.rank = rank, .size = 2, .engine = launch::Engine::store};
          world.segment = launch::SharedSegment::between_threads(2, job);
          world.store = std::make_shared<Store>(to(server, rank, 2));
          train(world, data[rank]);
        });
      });
    for (auto& rank : ranks) rank.join();
    over = true;
    stranger.join();
    bool good = errors[0].empty() && errors[1].empty() && !notifications.next();
    for (auto const& values : data)
      for (float const x : values) good = good && x == 180.F;
    failures += !good;
    CAPTURE(errors[0]);
    CAPTURE(errors[1]);
    CHECK(good);
  }
  CHECK(failures == 0);
  if (!LOCKSTEP_SANITIZED) CHECK(resident_bytes() - before < (32 << 20));
}

TEST_CASE("a peer that claims to be rank 1 before rank 1 joins does not keep it out") {
  StoreServer const server(serving(2));
  auto const early = connected_to(server.port()), challenged = connected_to(server.port());
  send_all(early, wire::as_bytes(hello(1, 2)));
  (void)challenge_to(challenged, hello(1, 2));
  Store first(to(server, 0, 2)), second(to(server, 1, 2));
  second.set("name", "rank 1");
  CHECK(first.get("name") == "rank 1");
  CHECK(contains(message_of([&] { Store(to(server, 1, 2)); }), "rank 1 has joined already"));
}

TEST_CASE("ranks with another secret, without one, or at a store without one are refused, and say why") {
  StoreServer const server(serving(2)), open(serving(2, ""));
  auto const refused = [](wire::StoreAddress address) {
    address.join_seconds = 0;
    return message_of([&] { Store const store(address); });
  };
  CHECK(contains(refused(to(server, 1, 2, std::string(64, 't'))), "has another secret"));
  CHECK(contains(refused(to(server, 1, 2, "")), "has a secret, and rank 1 has none"));
  CHECK(contains(refused(to(open, 1, 2)), "does not prove that it knows this run's secret"));
  CHECK(refused(to(server, 1, 2)).empty());
  CHECK(refused(to(open, 1, 2, "")).empty());
}

TEST_CASE("a proof holds for one rank, kind and port") {
  auto const proof = [](wire::StoreHandshake const& handshake, std::uint16_t port = 1) {
    return wire::store_proof(secret, wire::StoreSide::client, handshake, {}, port);
  };
  auto const mine = hello(1, 2);
  CHECK(proof(mine) == proof(mine));
  CHECK(proof(mine) != proof(hello(0, 2)));
  CHECK(proof(mine) != proof(hello(1, 3)));
  CHECK(proof(mine) != proof(hello(1, 2, StoreConnectionKind::notifications)));
  CHECK(proof(mine) != proof(mine, 2));
  CHECK(proof(mine) != wire::store_proof(secret, wire::StoreSide::server, mine, {}, 1));
  CHECK(wire::new_nonce() != wire::new_nonce());
}

TEST_CASE("idle connections take few descriptors, and delay a join by less than a second, before and after the start") {
  StoreServer const server(serving(3));
  auto const files = open_files();
  auto const before = resident_bytes();
  Flood const flood(server.port(), is_long() ? 1000 : 300);
  ::usleep(30'000);
  std::unique_ptr<Store> ranks[3];
  for (int const rank : {0, 1, 2})
    CHECK(seconds_of([&] { ranks[rank] = std::make_unique<Store>(to(server, rank, 3)); }) < 1);
  CHECK(open_files() <= files + 6 + 64);
  ranks[1].reset();
  CHECK(seconds_of([&] { ranks[1] = std::make_unique<Store>(to(server, 1, 3)); }) < 1);
  CHECK(open_files() <= files + 6 + 64);
  ranks[1]->set("name", "value");
  CHECK(ranks[0]->get("name") == "value");
  if (!LOCKSTEP_SANITIZED) CHECK(resident_bytes() - before < (32 << 20));
}

TEST_CASE("a connection says only what its kind may say, once") {
  struct Sent {
    StoreConnectionKind kind;
    std::string message;
  };
  std::string const end(wire::as_bytes(wire::RankEnd{1, 0, "no disk"}));
  for (auto const& sent : {Sent{StoreConnectionKind::requests, call(StoreCall::ended, {}, end)},
                           {StoreConnectionKind::notifications, call(StoreCall::set, "name", "value")},
                           {StoreConnectionKind::notifications, call(StoreCall::gather, "all", "part", 2)},
                           {StoreConnectionKind::notifications, call(StoreCall::ended, {}, "short")},
                           {StoreConnectionKind::requests, call(StoreCall::gather, "all", "part", 0)},
                           {StoreConnectionKind::requests, call(StoreCall::gather, "all", "part", 3)},
                           {StoreConnectionKind::requests, call(StoreCall::prove, {}, {})}}) {
    CAPTURE(static_cast<int>(sent.message[0]));
    StoreServer const server(serving(2));
    StoreConnection notifications(to(server, 0, 2), StoreConnectionKind::notifications);
    StoreConnection connection(to(server, 1, 2), sent.kind);
    connection.send(sent.message);
    auto const lost = notifications.wait(deadline_in(5));
    REQUIRE(lost);
    CHECK(lost->type == StoreReply::rank_lost);
    CHECK(lost->rank == 1);
    CHECK(lost->value.starts_with("it sent an invalid"));
  }
  StoreServer const server(serving(2));
  Store const first(to(server, 0, 2));
  StoreConnection notifications(to(server, 0, 2), StoreConnectionKind::notifications);
  StoreConnection twice(to(server, 1, 2), StoreConnectionKind::requests);
  twice.send(call(StoreCall::gather, "all", "part", 2) + call(StoreCall::gather, "all", "other", 2));
  auto const lost = notifications.wait(deadline_in(5));
  REQUIRE(lost);
  CHECK(lost->value == "it sent an invalid contribution");
}

TEST_CASE("contributions that are too short, too long or unknown are refused before they are read") {
  auto const outcome = [](std::string const& contribution) {
    StoreServer const server(serving(2));
    StoreConnection second(to(server, 1, 2), StoreConnectionKind::requests);
    second.send(call(StoreCall::gather, "all/0/0", contribution, 2));
    return message_of([&] {
      launch::World world{.rank = 0, .size = 2, .engine = launch::Engine::store};
      world.store = std::make_shared<Store>(to(server, 0, 2));
      std::vector<float> data(10);
      add_up(world, data);
    });
  };
  comm::CollectiveOperation operation{.count = 10};
  auto descriptor = comm::detail::descriptor_of(operation, 1);
  std::string const head(wire::as_bytes(descriptor)), numbers(10 * sizeof(float), '\0');
  CHECK(outcome(head + numbers).empty());
  for (auto const& bad : {std::string(), head.substr(1), head, head + numbers.substr(1), head + numbers + "x"}) {
    CAPTURE(bad.size());
    CHECK(contains(outcome(bad), "rank 1 has contributed " + std::to_string(bad.size()) + " bytes to operation 0"));
  }
  descriptor.type = static_cast<ElementType>(99);
  CHECK(contains(outcome(std::string(wire::as_bytes(descriptor)) + numbers), "has sent an unknown operation"));
}

TEST_CASE("values have a limit in all, and a rank that does not read its answers gets no more") {
  StoreServer const server(serving(1));
  auto const before = resident_bytes();
  std::string const large(wire::max_store_bytes, 'x');
  {
    Store store(to(server, 0, 1));
    int stored = 0;
    std::string refusal;
    for (int i = 0; i < 70 && refusal.empty(); ++i) {
      refusal = message_of([&] { store.set("name" + std::to_string(i), large); });
      stored += refusal.empty();
    }
    CHECK(stored == 63);  // with names
    CHECK(contains(refusal, "at most 67108864 can be stored"));
    store.set("name1", "");
    store.set("other", "value");
    CHECK(store.get("other") == "value");
  }
  StoreConnection greedy(to(server, 0, 1), StoreConnectionKind::requests);
  std::string many;
  for (int i = 0; i < 400; ++i) many += call(StoreCall::get, "name2", {});
  greedy.send(many);
  ::usleep(100'000);
  if (!LOCKSTEP_SANITIZED)
    CHECK(resident_bytes() - before < 64l * 4 << 20);  // values and answers; 400 MiB are asked for
  for (int i = 0; i < 400; ++i) {
    auto const answer = greedy.wait(deadline_in(5));
    REQUIRE(answer);
    REQUIRE(answer->value.size() == large.size());
  }
}

namespace {

/// Listens where a store might be, and serves one connection after the other.
class FalseStore {
 public:
  explicit FalseStore(std::function<void(FileDescriptor const&)> serve)
      : listening_socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), serve_(std::move(serve)) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof name;
    REQUIRE(::bind(listening_socket_.get(), reinterpret_cast<sockaddr*>(&name), sizeof name) == 0);
    REQUIRE(::listen(listening_socket_.get(), 0) == 0);
    REQUIRE(::getsockname(listening_socket_.get(), reinterpret_cast<sockaddr*>(&name), &bytes) == 0);
    port_ = ntohs(name.sin_port);
    if (serve_)
      thread_ = std::thread([this] {
        for (;;) {
          FileDescriptor const client(::accept(listening_socket_.get(), nullptr, nullptr));
          if (client.get() < 0) return;
          serve_(client);
        }
      });
  }
  FalseStore(FalseStore const&) = delete;
  FalseStore& operator=(FalseStore const&) = delete;
  ~FalseStore() {
    ::shutdown(listening_socket_.get(), SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
  }
  [[nodiscard]] wire::StoreAddress address(double join_seconds, std::string const& with_secret = {}) const {
    return {.host = "127.0.0.1",
            .port = port_,
            .job = job,
            .rank = 1,
            .size = 2,
            .join_seconds = join_seconds,
            .wait_seconds = 0.3,
            .silence_seconds = 0.3,
            .secret = with_secret};
  }

 private:
  FileDescriptor listening_socket_;
  std::function<void(FileDescriptor const&)> serve_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

std::string header(StoreReply type, std::uint32_t key_bytes, std::uint32_t value_bytes) {
  wire::StoreMessageHeader head;
  head.type = static_cast<std::uint8_t>(type);
  head.key_bytes = key_bytes;
  head.value_bytes = value_bytes;
  return std::string(wire::as_bytes(head));
}
void drain(FileDescriptor const& file) {
  char bytes[4096];
  timeval const limit{2, 0};
  ::setsockopt(file.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  while (::recv(file.get(), bytes, sizeof bytes, 0) > 0) continue;
}

}  // namespace

TEST_CASE("a length that a false store announces is compared with what is expected before memory is taken") {
  for (auto const& announced : {header(StoreReply::refused, 0, 1 << 30), header(StoreReply::done, 1, 8),
                                header(StoreReply::gathered, 0, 1 << 20), header(StoreReply::challenge, 0, 1 << 20)}) {
    FalseStore const store([&](FileDescriptor const& client) {
      send_all(client, announced);
      drain(client);
    });
    CHECK(contains(message_of([&] { Store const client(store.address(0)); }), "is not a store"));
  }
  for (auto const& announced : {header(StoreReply::done, 0, wire::max_store_bytes + 1),
                                header(StoreReply::lost, 0, wire::max_store_text_bytes + 1),
                                header(StoreReply::gathered, 1, 3 * wire::max_store_bytes)}) {
    FalseStore const store([&](FileDescriptor const& client) {
      (void)received(client, sizeof(wire::StoreHandshake));
      send_all(client, wire::store_message(1, {}, wire::StoreHandshake::acceptance()));
      send_all(client, announced);
      drain(client);
    });
    CHECK(contains(message_of([&] { (void)Store(store.address(0)).get("name"); }), "is not a store"));
  }
}

TEST_CASE("text of another process is escaped and cut in an error") {
  FalseStore const store([](FileDescriptor const& client) {
    send_all(client, wire::store_message(static_cast<std::uint8_t>(StoreReply::refused), {},
                                         "\x1b]0;title" + std::string(2000, 'x')));
    drain(client);
  });
  auto const refusal = message_of([&] { Store const client(store.address(0)); });
  CHECK(contains(refusal, "refuses: \\x1b]0;title"));
  CHECK(refusal.size() < 800);

  StoreServer const server(serving(2));
  StoreConnection notifications(to(server, 0, 2), StoreConnectionKind::notifications),
      other(to(server, 1, 2), StoreConnectionKind::notifications);
  Store first(to(server, 0, 2));
  other.send(StoreCall::ended, {}, wire::as_bytes(wire::RankEnd{1, 0, "\x1b[2Jno\ndisk"}));
  auto const message = notifications.wait(deadline_in(5));
  REQUIRE(message);
  auto const segment = launch::SharedSegment::between_threads(2, job);
  wire::record_notification(segment->control(), 0, *message);
  CHECK(segment->control().describe(1) == "rank 1 failed: \\x1b[2Jno\\x0adisk");
  CHECK(contains(wire::ended_early(*message).what(), "before all ranks had joined: \\x1b[2Jno\\x0adisk"));
  CHECK(contains(message_of([&] { (void)first.get("never"); }), "rank 1 has failed: \\x1b[2Jno\\x0adisk; rank 0"));
}

TEST_CASE("a join ends at its deadline against silent, slow and full stores, and against those that hang up") {
  auto const join_seconds = 0.2;
  FalseStore const silent([](FileDescriptor const& client) { drain(client); });
  FalseStore const slow([](FileDescriptor const& client) {
    auto const acceptance = wire::store_message(1, {}, wire::StoreHandshake::acceptance());
    for (std::size_t i = 0; i + 1 < acceptance.size() && ::send(client.get(), &acceptance[i], 1, MSG_NOSIGNAL) == 1;
         ++i)
      ::usleep(100'000);
  });
  FalseStore const closing([](FileDescriptor const&) {});
  FalseStore const full({});
  std::vector<FileDescriptor> queue;  // until connections wait for those in the queue
  for (int i = 0; i < 4; ++i) {
    queue.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_port = htons(full.address(0).port);
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    (void)::connect(queue.back().get(), reinterpret_cast<sockaddr*>(&name), sizeof name);
  }
  std::vector<std::thread> joins;
  for (auto const* store : {&silent, &slow, &closing, &full})
    joins.emplace_back([&, store] {
      for (auto const& with_secret : {std::string(), secret}) {
        std::string message;
        CHECK(seconds_of([&] {
                message = message_of([&] { Store const client(store->address(join_seconds, with_secret)); });
              }) < join_seconds + 1);
        CHECK_FALSE(message.empty());
      }
    });
  for (auto& join : joins) join.join();
  // All ports of a run belong to other programs.
  wire::RendezvousAddress const ports{
      "127.0.0.1", {silent.address(0).port, slow.address(0).port, closing.address(0).port, full.address(0).port}, job};
  std::string message;
  CHECK(seconds_of([&] {
          message = message_of([&] { (void)wire::connect_to_store(silent.address(join_seconds, secret), ports); });
        }) < join_seconds + 1);
  CHECK(contains(message, "rank 0 was not found on 127.0.0.1"));
}

TEST_CASE("silent programs at a run's first ports delay a rank with a secret by less than a second") {
  FalseStore const silent([](FileDescriptor const&client) { drain(client); }),
      other([](FileDescriptor const&client) { drain(client); });
  StoreServer const server(serving(2));
  wire::RendezvousAddress const ports{"127.0.0.1", {silent.address(0).port, other.address(0).port, server.port()}, job};
  CHECK(seconds_of([&] { CHECK(wire::connect_to_store(to(server, 1, 2), ports).address().port == server.port()); }) <
        1);
}

TEST_CASE("a store that takes no bytes is given up at the caller's limit") {
  FalseStore const store([](FileDescriptor const& client) {
    send_all(client, wire::store_message(1, {}, wire::StoreHandshake::acceptance()));
    ::usleep(700'000);
  });
  std::string message;
  CHECK(seconds_of([&] {
          message = message_of([&] {
            Store client(store.address(1));  // values may wait for 0.3 s
            for (int i = 0; i < 64; ++i) client.set("name", std::string(wire::max_store_bytes, 'x'));
          });
        }) < 2.5);
  CHECK(contains(message, "Store: rank 1"));
}

TEST_CASE("a store listens on the loopback interface for a name or address of it, else where the address is") {
  using wire::StoreListener;
  auto const addresses = [](StoreListener const& listener) {
    std::string out;
    for (auto const& socket : listener.sockets()) {
      sockaddr_storage name{};
      socklen_t bytes = sizeof name;
      REQUIRE(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&name), &bytes) == 0);
      char text[NI_MAXHOST];
      REQUIRE(::getnameinfo(reinterpret_cast<sockaddr*>(&name), bytes, text, sizeof text, nullptr, 0, NI_NUMERICHOST) ==
              0);
      out += std::string(text) + " ";
    }
    return out;
  };
  CHECK(addresses(StoreListener::at_host("127.0.0.1", 0)) == "127.0.0.1 ");
  CHECK(addresses(StoreListener::at_host("127.0.0.2", 0)) == "127.0.0.2 ");
  auto const localhost = StoreListener::at_host("localhost", 0);
  CHECK((addresses(localhost) == "::1 127.0.0.1 " || addresses(localhost) == "127.0.0.1 "));
  CHECK_FALSE(localhost.on_all_interfaces());
  CHECK(StoreListener::at_host("192.0.2.1", 0).on_all_interfaces());  // for documents: no host has it
  StoreServer const server({.job = job, .size = 1, .host = "127.0.0.1"});
  CHECK(server.host() == "127.0.0.1");
}

TEST_CASE("without a secret, ranks of one host meet at a Unix socket that other users cannot use") {
  launch::Environment const one_host{.launcher = launch::Launcher::slurm, .size = 2, .local_size = 2},
      two_hosts{.launcher = launch::Launcher::slurm, .size = 2, .local_size = 1};
  launch::Options options;
  std::string warning;
  options.warn = [&](std::string const& text) { warning += text; };
  wire::RendezvousAddress address{"127.0.0.1", {4711}, 99};
  wire::protect(address, secret, two_hosts, options);
  wire::protect(address, secret, one_host, options);
  CHECK(address.local_name.empty());
  CHECK(warning.empty());
  wire::protect(address, {}, two_hosts, options);
  CHECK(contains(warning, "the ranks on several hosts have no secret"));
  CHECK(contains(warning, "LOCKSTEP_SECRET_FILE"));
  options.require_secret = true;
  CHECK(contains(message_of([&] { wire::protect(address, {}, two_hosts, options); }),
                 "launch: --require-secret: 2 ranks"));
  wire::protect(address, secret, two_hosts, options);
  wire::protect(address, {}, one_host, options);
  REQUIRE_FALSE(address.local_name.empty());

  address.local_name += "-" + std::to_string(::getpid());
  std::optional<StoreServer> server;
  wire::StoreAddress const at{.job = job, .rank = 1, .size = 2, .join_seconds = 1, .wait_seconds = 5};
  wire::open_store(server, address, at);
  Store store(wire::connect_to_store(at, address));
  store.set("name", "value");
  CHECK(store.get("name") == "value");
  std::optional<StoreServer> again;
  CHECK(contains(message_of([&] { wire::open_store(again, address, at); }), "another run of the same name"));
  std::thread([&] {
    if (::syscall(SYS_setresuid, -1, 65534, -1) != 0) {
      MESSAGE("not tested: this user may not become another");
      return;
    }
    auto stranger = at;
    stranger.rank = 0;
    stranger.join_seconds = 0;
    stranger.local_name = address.local_name;
    CHECK(contains(message_of([&] { Store const client(stranger); }), "another user's process"));
    wire::LocalAddress const name(address.local_name);
    FileDescriptor const file(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(::connect(file.get(), name.get(), name.bytes) == 0);
    send_all(file, wire::as_bytes(hello(0, 2)));
    CHECK(received(file, 1).empty());
  }).join();
}

TEST_CASE("the meeting on one host ends at its deadline against silent peers, and against one that accepts nothing") {
  auto const join_seconds = 0.4;
  auto const key = "meeting " + std::to_string(::getpid());
  auto const segment = launch::SharedSegment::between_processes(2, job);
  wire::LocalAddress const name("lockstep-" + std::to_string(::geteuid()) + "-" +
                                std::to_string(mix(std::string_view(key))));
  auto const peer = [&] {
    FileDescriptor out(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    return std::pair(::connect(out.get(), name.get(), name.bytes) == 0, std::move(out));
  };
  {  // silent connections that come without end, to rank 0
    LocalRendezvous rendezvous(key, 0, 2);
    std::atomic<bool> over = false;
    std::thread strangers([&] {
      std::vector<FileDescriptor> held;
      for (int i = 0; i < 4000 && !over; ++i, ::usleep(200)) {
        auto [connected, file] = peer();
        if (connected && held.size() < 200) held.push_back(std::move(file));
      }
    });
    std::string message;
    CHECK(seconds_of([&] {
            message = message_of([&] { (void)rendezvous.accept_ranks(segment->descriptor(), job, join_seconds); });
          }) < join_seconds + 1);
    CHECK(contains(message, "these have not joined within 0 s: 1"));
    std::vector<FileDescriptor> ranks;
    std::thread first([&] { ranks = rendezvous.accept_ranks(segment->descriptor(), job, 10); });
    LocalRendezvous second(key, 1, 2);
    CHECK(seconds_of([&] { (void)second.join(5); }) < 1);
    first.join();
    CHECK(ranks.size() == 2);
    over = true;
    strangers.join();
  }
  FileDescriptor const squatter(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  REQUIRE(::bind(squatter.get(), name.get(), name.bytes) == 0);
  REQUIRE(::listen(squatter.get(), 0) == 0);
  LocalRendezvous rank(key, 1, 2);
  std::string message;
  for (bool const full : {false, true}) {
    std::vector<FileDescriptor> queue;
    for (int i = 0; full && i < 4; ++i) queue.push_back(peer().second);
    CHECK(seconds_of([&] { message = message_of([&] { (void)rank.join(join_seconds); }); }) < join_seconds + 1);
    CHECK(contains(message, full ? "rank 1 has not reached rank 0" : "which did not answer"));
  }
  CHECK(contains(message_of([&] { (void)LocalRendezvous(key, 0, 2).accept_ranks(segment->descriptor(), job, 1); }),
                 "could not open the rendezvous"));
  // With a secret the name is unknown.
  LocalRendezvous hidden(key, 0, 1, secret);
  CHECK(hidden.accept_ranks(segment->descriptor(), job, 1).size() == 1);
}

TEST_CASE("a secret is read from the environment, or from a file that only this user can read") {
  static std::string file, text;
  auto const read = [](char const* of_file, char const* of_text) {
    file = of_file ? of_file : "";
    text = of_text ? of_text : "";
    return wire::read_secret({[](void const*, char const* name) -> char const* {
      auto const& value = std::string_view(name) == "LOCKSTEP_SECRET_FILE" ? file : text;
      return value.empty() ? nullptr : value.c_str();
    }});
  };
  CHECK(read(nullptr, nullptr).empty());
  CHECK(read(nullptr, secret.c_str()) == secret);
  auto const refusal = message_of([&] { (void)read(nullptr, "hunter2"); });
  CHECK(contains(refusal, "LOCKSTEP_SECRET has 7 characters; a secret has from 32 to 4096"));
  CHECK_FALSE(contains(refusal, "hunter2"));
  CHECK(contains(message_of([&] { (void)read("/no/such/file", nullptr); }), "No such file"));
  CHECK(contains(message_of([&] { (void)read("/tmp", nullptr); }), "is not a regular file"));
  char path[] = "/tmp/lockstep-secret-XXXXXX";
  FileDescriptor const made(::mkstemp(path));
  REQUIRE(::write(made.get(), (secret + "\n").data(), secret.size() + 1) == std::ssize(secret) + 1);
  CHECK(read(path, "ignored") == secret);
  ::chmod(path, 0640);
  CHECK(contains(message_of([&] { (void)read(path, nullptr); }), "is open to other users; chmod 600 it"));
  ::unlink(path);
  auto const fifo = std::string(path) + "-fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  CHECK(contains(message_of([&] { (void)read(fifo.c_str(), nullptr); }), "is not a regular file"));  // at once
  ::unlink(fifo.c_str());
}

TEST_CASE("the handshake of each rank takes less than a millisecond") {
  int ranks = is_long() ? 1024 : 32;
  rlimit files{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &files) == 0);
  auto const before = files;
  files.rlim_cur = std::min<rlim_t>(files.rlim_max, 8192);
  ::setrlimit(RLIMIT_NOFILE, &files);
  ranks = std::min(ranks, static_cast<int>(files.rlim_cur / 5));
  double seconds = 0, processor_seconds = 0;
  {
    StoreServer const server(serving(ranks));
    std::vector<std::unique_ptr<StoreConnection>> connections;
    processor_seconds = -processor_time();
    seconds = seconds_of([&] {
      for (int rank = 0; rank < ranks; ++rank)
        for (auto const kind : {StoreConnectionKind::requests, StoreConnectionKind::notifications})
          connections.push_back(std::make_unique<StoreConnection>(to(server, rank, ranks), kind));
    });
    processor_seconds += processor_time();
  }
  ::setrlimit(RLIMIT_NOFILE, &before);
  MESSAGE(ranks, " ranks: ", 1e3 * seconds / ranks, " ms for each, ", 1e3 * processor_seconds / ranks,
          " ms of processor time on both sides");
  if (is_long()) CHECK(1e3 * processor_seconds / ranks < 1);
}
