// SPDX-License-Identifier: Apache-2.0
// Ranks started by another launcher: by hand with its variables, and by the installed launchers.
#include <doctest/doctest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <lockstep/core/file_descriptor.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/launch/run/run.hpp>

#include <array>
#include <map>
#include <stdexcept>
#include <utility>

#include "death_of.hpp"
#include "python.hpp"
#include "ranks.hpp"
#include "skip.hpp"

using namespace lockstep_test;
using launch::World;
using lockstep::FileDescriptor;
using Texts = std::vector<std::string>;

namespace {

pid_t start(Texts const& arguments, Texts variables = {}) {
  for (char** one = environ; *one != nullptr; ++one) variables.emplace_back(*one);
  std::vector<char*> argv, envp;
  for (auto const& text : arguments) argv.push_back(const_cast<char*>(text.c_str()));
  for (auto const& text : variables) envp.push_back(const_cast<char*>(text.c_str()));
  argv.push_back(nullptr);
  envp.push_back(nullptr);
  pid_t pid = 0;
  REQUIRE(::posix_spawnp(&pid, argv[0], nullptr, nullptr, argv.data(), envp.data()) == 0);
  return pid;
}

int end_of(pid_t pid) {
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Texts command_of(std::string const& rank_case) {
  return {std::filesystem::read_symlink("/proc/self/exe"), "--test-case=" + rank_case, "--no-skip=true"};
}

std::string unique_port() { return std::to_string(::getpid()); }

/// The variables that torchrun sets for a rank.
Texts variables_of(int rank, int size, std::string const& port = unique_port()) {
  auto const r = std::to_string(rank), n = std::to_string(size);
  return {"RANK=" + r,
          "WORLD_SIZE=" + n,
          "LOCAL_RANK=" + r,
          "LOCAL_WORLD_SIZE=" + n,
          "MASTER_ADDR=localhost",
          "MASTER_PORT=" + port,
          "TORCHELASTIC_RUN_ID=none",
          "TORCHELASTIC_RESTART_COUNT=3"};
}

/// The variables on one of two hosts: the first rank is alone on its own, whose ranks were restarted less often.
Texts several_hosts_variables_of(int rank, int size) {
  auto out = variables_of(rank, size);
  out[2] = "LOCAL_RANK=" + std::to_string(std::max(rank - 1, 0));
  out[3] = "LOCAL_WORLD_SIZE=" + std::to_string(rank == 0 ? 1 : size - 1);
  if (rank == 0) out.back() = "TORCHELASTIC_RESTART_COUNT=1";
  out.emplace_back("TORCHELASTIC_USE_AGENT_STORE=True");  // the port is only a name
  return out;
}

std::vector<pid_t> start_ranks(int size, std::string const& rank_case, bool several_hosts = false) {
  std::vector<pid_t> out;
  for (int rank = 0; rank < size; ++rank)
    out.push_back(start(command_of(rank_case),
                        several_hosts ? several_hosts_variables_of(rank, size) : variables_of(rank, size)));
  return out;
}

void await_file(std::string const& name) {
  auto const limit = lockstep::deadline_in(60);
  while (Scratch::read(name).empty() && lockstep::Clock::nanoseconds() < limit) ::usleep(500);
  REQUIRE_FALSE(Scratch::read(name).empty());
}

/// The body of a rank that another launcher has started: messages go to a file.
void run_as_launched_rank(std::function<int(World&)> const& train, double join_seconds = 60, double grace_seconds = 0.1,
                          launch::OnSignal on_signal = launch::OnSignal::end) {
  if (std::getenv("LOCKSTEP_TEST_SCRATCH") == nullptr) return;
  for (int const number : {SIGINT, SIGTERM}) ::signal(number, SIG_DFL);  // doctest reports them as crashes
  auto const own = std::to_string(::getpid());
  launch::Options options;
  if (!launch::detect().one_host()) options.engine = launch::Engine::nccl;
  options.join_seconds = join_seconds;
  options.grace_seconds = grace_seconds;
  options.on_signal = on_signal;
  options.report = [](std::string const& text) { Scratch::write("report", Scratch::read("report") + text + "\n"); };
  try {
    std::_Exit(launch::run(options, train));
  } catch (std::exception const& error) {
    Scratch::write("thrown" + own, error.what());
    std::_Exit(launch::exit_code(error));
  }
}

}  // namespace

TEST_CASE("rank: tells its world" * doctest::skip()) {
  run_as_launched_rank([](World& world) {
    auto& rank_records = world.segment->control().ranks;
    Scratch::write("world" + std::to_string(world.rank),
                   std::to_string(world.size) + " " + std::to_string(world.local_rank) + " " + name(world.engine) +
                       " " + std::to_string(world.restarts) + " " + std::to_string(world.job));
    for (int r = 0; r < world.size; ++r)
      while (rank_records[static_cast<std::size_t>(r)].pid.load() == 0) ::usleep(500);  // all map one page
    return 0;
  });
}

TEST_CASE("ranks described by torchrun's variables connect, and leave no files") {
  NothingLeft const nothing_left;
  for (int const size : {2, 3}) {
    Scratch const scratch;
    for (auto const pid : start_ranks(size, "rank: tells its world")) CHECK(end_of(pid) == 0);
    auto const first = Scratch::read("world0");
    CHECK(first.starts_with(std::to_string(size) + " 0 process 3 "));
    CHECK(Scratch::read("world1").substr(11) == first.substr(11));  // one job
    CHECK(Scratch::read("report").empty());
  }
}

TEST_CASE("rank: tells its world through the store" * doctest::skip()) {
  run_as_launched_rank([](World& world) {
    Scratch::write("world" + std::to_string(world.rank),
                   std::to_string(world.local_size) + name(world.engine) + std::to_string(world.job));
    world.store->set("from " + std::to_string(world.rank), std::to_string(world.rank * 10));
    for (int r = 0; r < world.size; ++r)
      if (world.store->get("from " + std::to_string(r)) != std::to_string(r * 10)) return 5;
    Scratch::write("restarts" + std::to_string(world.rank), std::to_string(world.restarts));
    Scratch::write("next" + std::to_string(world.rank),
                   world.segment->control().rank_name((world.rank + 1) % world.size));
    return 0;
  });
}

TEST_CASE("ranks on several hosts connect through the first one's store, at any port that it could open") {
  NothingLeft const nothing_left;
  Scratch const scratch;
  std::string where(256, '\0');
  REQUIRE(::gethostname(where.data(), where.size()) == 0);
  auto const pids = start_ranks(3, "rank: tells its world through the store", true);
  for (auto const pid : pids) CHECK(end_of(pid) == 0);
  CHECK(Scratch::read("world0").starts_with("1store"));
  CHECK(Scratch::read("world0") != "1store0");
  CHECK(Scratch::read("world1") == "2" + Scratch::read("world0").substr(1));  // one job
  for (int const rank : {0, 1, 2}) CHECK(Scratch::read("restarts" + std::to_string(rank)) == "3");
  CHECK(Scratch::read("next1") == "rank 2 (pid " + std::to_string(pids[2]) + " on " + where.c_str() + ")");
  CHECK(Scratch::read("report").empty());
}

namespace {

/// The environment of a rank.
struct Variables {
  std::map<std::string, std::string> all;
  launch::Launcher launcher = launch::Launcher::torchrun;

  launch::detail::RendezvousAddress point(launch::Options const& options = {}) const {
    return launch::detail::rendezvous_address({launcher, 1, 4, 1, 2, 0, "RANK=1"}, options, lookup());
  }
  std::string job_key() const { return launch::detail::job_key({launcher, 1, 4, 1, 4, 0, "RANK=1"}, lookup()); }

 private:
  launch::Lookup lookup() const {
    return {[](void const* self, char const* name) -> char const* {
              auto const& texts = static_cast<Variables const*>(self)->all;
              auto const at = texts.find(name);
              return at == texts.end() ? nullptr : at->second.c_str();
            },
            this};
  }
};

}  // namespace

TEST_CASE("the rendezvous of several hosts is the launcher's, or is given by name") {
  using launch::detail::first_slurm_host;
  CHECK(first_slurm_host("gpu[003-004,010],login1") == "gpu003");
  CHECK(first_slurm_host("rack[1-2]node[07,9]") == "rack1node07");
  CHECK(first_slurm_host("login1,gpu[1-2]") == "login1");
  CHECK(first_slurm_host("gpu[1") == "gpu1");
  CHECK(first_slurm_host("").empty());

  Variables torchrun{{{"MASTER_ADDR", "n1"}, {"MASTER_PORT", "29500"}}};
  CHECK(torchrun.point().host == "n1");
  CHECK(torchrun.point().ports == std::vector<std::uint16_t>{29500});
  auto agent = torchrun;
  agent.all["TORCHELASTIC_USE_AGENT_STORE"] = "True";  // and so has the port
  auto const ports = agent.point().ports;
  CHECK(ports.size() > 1);
  CHECK(ports == agent.point().ports);
  for (auto const port : ports) CHECK((port >= 16384 && port < 32768));
  auto other = agent;
  other.all["TORCHELASTIC_RESTART_COUNT"] = "1";  // the agents of two hosts may have different counters
  CHECK(other.point().run == agent.point().run);
  CHECK(other.point().ports == ports);
  CHECK(other.job_key() != agent.job_key());
  other.all["TORCHELASTIC_RUN_ID"] = "x";
  CHECK(other.point().run != agent.point().run);
  CHECK(agent.point({.master_address = "n2", .master_port = 7}).ports == std::vector<std::uint16_t>{7});
  CHECK(agent.point({.master_address = "n2"}).host == "n2");
  CHECK(Variables{{{"SLURM_STEP_NODELIST", "n[1-2]"}}}.point().host == "n1");
  CHECK_THROWS_WITH_AS((void)Variables{}.point(), doctest::Contains("set MASTER_ADDR"), lockstep::ConfigError);
  torchrun.all["MASTER_PORT"] = "x";
  CHECK_THROWS_WITH_AS((void)torchrun.point(), doctest::Contains("MASTER_PORT=x"), lockstep::ConfigError);
}

TEST_CASE("a launcher's per-host values distinguish runs there, and do not keep ranks of two hosts apart") {
  std::array<int, 2> pair{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) == 0);
  FileDescriptor const held(pair[0]), other_end(pair[1]);
  std::map<std::string, std::string> const equal_values{
      {"MASTER_ADDR", "n1"}, {"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "0"}, {"MPISPAWN_MPIRUN_ID", "4242"}};
  for (auto const launcher : {launch::Launcher::pmi, launch::Launcher::mvapich}) {
    CAPTURE(std::string(name(launcher)));
    Variables const plain{equal_values, launcher};
    for (auto const& variable :
         std::map<std::string, std::string>{{"PMI_FD", std::to_string(held.get())}, {"PMI_PORT", "n1:4711"}}) {
      CAPTURE(variable.first);
      auto elsewhere = plain;
      elsewhere.all[variable.first] = variable.second;
      CHECK(elsewhere.point().run == plain.point().run);
      CHECK(elsewhere.point().ports == plain.point().ports);
      CHECK(elsewhere.job_key() != plain.job_key());
    }
    auto other_run = plain;
    other_run.all[launcher == launch::Launcher::pmi ? "SLURM_STEP_ID" : "MPISPAWN_MPIRUN_ID"] = "1";
    CHECK(other_run.point().run != plain.point().run);
  }
}

TEST_CASE("a port of another run is skipped, by the store and by its clients") {
  using launch::StoreServer;
  StoreServer const foreign_server({.job = 6, .size = 2});
  auto const free_port = StoreServer(StoreServer::Options{}).port();
  launch::detail::RendezvousAddress const point{"localhost", {foreign_server.port(), free_port}, 5};
  std::optional<StoreServer> server;
  launch::detail::StoreAddress const at{.job = 5, .rank = 1, .size = 2, .join_seconds = 5};
  launch::detail::open_store(server, point, at);
  REQUIRE(server);
  CHECK(server->port() == free_port);
  CHECK(launch::detail::connect_to_store(at, point).address().port == free_port);
  std::optional<StoreServer> none;
  CHECK_THROWS_WITH_AS(launch::detail::open_store(none, point, at),
                       doctest::Contains(("port " + std::to_string(free_port)).c_str()), lockstep::ConfigError);
}

TEST_CASE("a rank that finds no store reports where it looked") {
  launch::detail::RendezvousAddress const nowhere{"localhost", {1, 2}, 5};
  CHECK_THROWS_WITH_AS(
      (void)launch::detail::connect_to_store({.host = "localhost", .rank = 1, .join_seconds = 0.1}, nowhere),
      doctest::Contains("rank 0 was not found on localhost"), lockstep::ConfigError);
}

TEST_CASE("a refused rank reports the reason, also after the store is gone") {
  auto server = std::make_unique<launch::StoreServer>(launch::StoreServer::Options{.job = 5, .size = 2});
  launch::detail::StoreAddress const at{"localhost", 0, 5, 1, 2, 0.6};
  launch::detail::RendezvousAddress const point{"localhost", {server->port()}, 5};
  auto const first = launch::detail::connect_to_store(at, point);
  std::thread closes([&] {
    ::usleep(200'000);
    server.reset();
  });
  CHECK_THROWS_WITH_AS((void)launch::detail::connect_to_store(at, point),
                       doctest::Contains("rank 1 has joined already"), lockstep::ConfigError);
  closes.join();
}

TEST_CASE("a rank that gives up before all have connected tells the others which ranks were missing") {
  launch::StoreServer const server({.job = 5, .size = 3});
  std::string reported[2];
  std::vector<std::thread> ranks;
  for (int const rank : {0, 1})
    ranks.emplace_back([&, rank] {
      launch::detail::StoreAddress const at{"localhost", server.port(), 5, rank, 3};
      World world;
      world.rank = rank;
      world.size = 3;
      world.store = std::make_shared<launch::Store>(at);
      launch::detail::StoreConnection notifications(at, launch::detail::StoreConnectionKind::notifications);
      try {
        launch::detail::rendezvous(world, notifications, rank == 0 ? 0.2 : 600);
      } catch (lockstep::ConfigError const& error) {
        reported[rank] = error.what();
      }
    });
  for (auto& rank : ranks) rank.join();
  CHECK(contains(reported[0], "launch: of 3 ranks these have not joined within 0 s: "));
  CHECK(contains(reported[1], "rank 0 joined and ended before all ranks had joined: of 3 ranks these have not joined"));
}

TEST_CASE("if a store ends before all have connected, the error is the first rank's, which says why") {
  auto server = std::make_unique<launch::StoreServer>(launch::StoreServer::Options{.job = 5, .size = 3});
  launch::detail::StoreAddress const at{"localhost", server->port(), 5, 1, 3};
  World world;
  world.rank = 1;
  world.size = 3;
  world.store = std::make_shared<launch::Store>(at);
  launch::detail::StoreConnection notifications(at, launch::detail::StoreConnectionKind::notifications);
  server.reset();
  CHECK_THROWS_WITH_AS(launch::detail::rendezvous(world, notifications, 600),
                       doctest::Contains("rank 0 joined and ended before all ranks had joined"), lockstep::ConfigError);
}

TEST_CASE("a rank that ends after it has connected, and before all have, is named at once") {
  launch::StoreServer const server({.job = 5, .size = 3});
  launch::detail::StoreAddress const first{"localhost", server.port(), 5, 0, 3};
  auto second = first;
  second.rank = 1;
  World world;
  world.size = 3;
  world.store = std::make_shared<launch::Store>(first);
  launch::detail::StoreConnection notifications(first, launch::detail::StoreConnectionKind::notifications);
  { launch::detail::StoreConnection const dies(second, launch::detail::StoreConnectionKind::requests); }
  CHECK_THROWS_WITH_AS(launch::detail::rendezvous(world, notifications, 600),
                       doctest::Contains("rank 1 joined and ended before all ranks had joined"), lockstep::ConfigError);
}

TEST_CASE("a signal does not end a wait for a file") {
  FileDescriptor const file(::eventfd(0, EFD_CLOEXEC));
  ::signal(SIGUSR1, [](int) {});
  int reported = -1;
  std::thread waits([&] { reported = launch::detail::readable(file.get(), lockstep::deadline_in(60)); });
  for (int i = 0; i < 20; ++i) {
    ::pthread_kill(waits.native_handle(), SIGUSR1);
    ::usleep(1000);
  }
  ::eventfd_write(file.get(), 1);
  waits.join();
  ::signal(SIGUSR1, SIG_DFL);
  CHECK(reported == 1);
  ::eventfd_t count = 0;
  ::eventfd_read(file.get(), &count);
  CHECK_FALSE(launch::detail::readable(file.get(), lockstep::deadline_in(0.01)));
}

TEST_CASE("rank: connects late" * doctest::skip()) {
  run_as_launched_rank([](World&) { return 0; }, 0.3);
}

TEST_CASE("a missing rank is named, by rank 0 and to the late rank") {
  NothingLeft const nothing_left;
  Scratch const scratch;
  std::vector<pid_t> pids;
  for (int const rank : {0, 2}) pids.push_back(start(command_of("rank: connects late"), variables_of(rank, 4)));
  pids.push_back(start(command_of("rank: connects late"), variables_of(1, 3, "7")));  // a run without a rank 0
  CHECK(end_of(pids[0]) == 2);
  CHECK(contains(Scratch::read("thrown" + std::to_string(pids[0])), "have not joined within 0 s: 1, 3"));
  CHECK(end_of(pids[2]) == 2);
  CHECK(contains(Scratch::read("thrown" + std::to_string(pids[2])), "rank 1 has not reached rank 0"));
  (void)end_of(pids[1]);
  auto const late_rank = start(command_of("rank: connects late"), several_hosts_variables_of(0, 2));
  CHECK(end_of(late_rank) == 2);
  CHECK(contains(Scratch::read("thrown" + std::to_string(late_rank)),
                 "have not joined within 0 s: 1; were they started?"));
}

TEST_CASE(
    "ranks on several hosts with one secret connect; with another or none they are refused, and it is not shown") {
  NothingLeft const nothing_left;
  std::string const secret(40, 'k'), other(40, 'o');
  auto const start_with = [](std::string const& rank_case, int rank, std::string const& variable) {
    auto variables = several_hosts_variables_of(rank, 2);
    if (!variable.empty()) variables.push_back("LOCKSTEP_SECRET=" + variable);
    return start(command_of(rank_case), variables);
  };
  {
    Scratch const scratch;
    std::string const rank_case = "rank: tells its world through the store";
    auto const first = start_with(rank_case, 0, secret), second = start_with(rank_case, 1, secret);
    CHECK(end_of(first) == 0);
    CHECK(end_of(second) == 0);
    CHECK(Scratch::read("world1") == Scratch::read("world0"));
  }
  for (auto const& wrong : {other, std::string(), std::string("short")}) {
    CAPTURE(wrong);
    Scratch const scratch;
    auto const first = start_with("rank: connects late", 0, secret);
    auto const second = start_with("rank: connects late", 1, wrong);
    CHECK(end_of(second) == 2);
    CHECK(end_of(first) == 2);
    auto const said = Scratch::read("thrown" + std::to_string(second));
    CHECK(contains(Scratch::read("thrown" + std::to_string(first)), "have not joined within 0 s: 1"));
    if (wrong != "short") CHECK(contains(said, "rank 0 was not found on "));
    for (auto const& text : {secret, other, std::string("short")}) CHECK_FALSE(contains(said, text));
  }
}

namespace {

/// Sends one message to the process listening under the name; returns whether there was an answer.
bool is_answered(std::string const& key, std::string const& message, uid_t host = ::geteuid()) {
  auto const name = "lockstep-" + std::to_string(host) + "-" + std::to_string(lockstep::mix(std::string_view(key)));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
  auto const bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  FileDescriptor const file(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  while (::connect(file.get(), reinterpret_cast<sockaddr*>(&address), bytes) != 0) ::usleep(500);
  auto const sent = ::send(file.get(), message.data(), message.size(), MSG_NOSIGNAL);
  if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) return false;  // refused before it said anything
  REQUIRE(sent == std::ssize(message));
  char answer = 0;
  return ::recv(file.get(), &answer, 1, 0) > 0;
}

/// Acts as another user, if this user may; only for the calling thread.
bool become_another_user() { return ::syscall(SYS_setresuid, -1, 65534, -1) == 0; }

}  // namespace

TEST_CASE("a process of another user cannot take a rank's place, including the first") {
  using launch::detail::LocalRendezvous;
  bool possible = false;
  std::thread([&] { possible = become_another_user(); }).join();
  if (!possible) {
    MESSAGE("not tested: this user may not become another");
    return;
  }
  auto const segment = launch::SharedSegment::between_processes(2, 42);
  for (bool const other_hosts : {true, false}) {
    CAPTURE(other_hosts);
    auto const user = ::geteuid();
    LocalRendezvous host("users", 0, 2), peer("users", 1, 2);
    std::size_t connected = 0;
    std::thread first([&] {
      if (other_hosts) (void)become_another_user();
      connected = host.accept_ranks(segment->descriptor(), 42, 60).size();
    });
    if (other_hosts)
      CHECK_THROWS_WITH_AS((void)peer.join(60), doctest::Contains("another user's process"), lockstep::ConfigError);
    std::thread second([&] {
      (void)become_another_user();
      LocalRendezvous::Handshake handshake;
      handshake.rank = 1;
      handshake.size = 2;
      std::string("users").copy(handshake.key, sizeof handshake.key);
      CHECK(is_answered("users", {reinterpret_cast<char const*>(&handshake), sizeof handshake}, user) == other_hosts);
    });
    second.join();
    if (!other_hosts) CHECK_NOTHROW((void)peer.join(60));
    first.join();
    CHECK(connected == 2);
  }
}

TEST_CASE("all ranks of a large host may connect before rank 0 has read a handshake") {
  using launch::detail::LocalRendezvous;
  constexpr int size = 120;
  auto const key = "large " + std::to_string(::getpid());
  auto const segment = launch::SharedSegment::between_processes(size, 42);
  std::vector<FileDescriptor> connected;
  std::thread first([&] {
    try {
      connected = LocalRendezvous(key, 0, size).accept_ranks(segment->descriptor(), 42, 3);
    } catch (lockstep::ConfigError const& error) {
      MESSAGE(error.what());
    }
  });
  launch::detail::LocalAddress const name("lockstep-" + std::to_string(::geteuid()) + "-" +
                                          std::to_string(lockstep::mix(std::string_view(key))));
  std::vector<FileDescriptor> peers;
  for (int rank = 1; rank < size; ++rank) {
    auto& peer = peers.emplace_back(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    while (::connect(peer.get(), name.get(), name.bytes) != 0) ::usleep(500);
  }
  ::usleep(100'000);  // rank 0 has accepted all
  for (int rank = 1; rank < size; ++rank) {
    LocalRendezvous::Handshake handshake;
    handshake.rank = rank;
    handshake.size = size;
    key.copy(handshake.key, sizeof handshake.key - 1);
    static_cast<void>(
        ::send(peers[static_cast<std::size_t>(rank) - 1].get(), &handshake, sizeof handshake, MSG_NOSIGNAL));
  }
  first.join();
  CHECK(connected.size() == size);
}

TEST_CASE("an exception of the function for reports does not end a rank that watches others") {
  auto const death = death_of([] {
    auto const segment = launch::SharedSegment::between_threads(2, 42);
    for (int const rank : {0, 1}) segment->control().join(rank, ::getpid());
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) ::_exit(8);
    std::vector<FileDescriptor> peers(2);
    peers[1] = FileDescriptor(ends[0]);
    launch::Options options;
    options.report = [](std::string const&) { throw std::runtime_error("the log is full"); };
    launch::detail::RankWatch watch(segment->control(), 0, std::move(peers), options);
    ::close(ends[1]);  // rank 1 is gone
    watch.wait_for_peers();
    ::usleep(100'000);
    ::_exit(7);
  });
  CHECK(WIFEXITED(death.status));
  CHECK(WEXITSTATUS(death.status) == 7);
  CHECK(contains(death.printed, "Options::report has thrown: the log is full"));
  CHECK(contains(death.printed, "rank 1"));
}

TEST_CASE("unauthenticated peers are refused, and do not keep the ranks from connecting") {
  using launch::detail::LocalRendezvous;
  auto const segment = launch::SharedSegment::between_processes(3, 42);
  LocalRendezvous host("a run", 0, 3), peer("a run", 1, 3), again("a run", 1, 3), third("a run", 2, 3),
      twice("a run", 0, 3);
  std::vector<FileDescriptor> connected;
  std::thread accepting([&] { connected = host.accept_ranks(segment->descriptor(), 42, 10); });
  auto const refused = [](LocalRendezvous& rendezvous) {
    std::string text;
    try {
      (void)rendezvous.join(10);
    } catch (lockstep::ConfigError const& error) {
      text = error.what();
    }
    return text;
  };
  CHECK_FALSE(is_answered("a run", "hello"));
  CHECK_FALSE(is_answered("a run", std::string(sizeof(LocalRendezvous::Handshake), '\0')));
  LocalRendezvous larger("a run", 1, 4), beyond("a run", 3, 3);
  CHECK(contains(refused(larger), "rank 1 of 4 cannot join a run of 3 ranks"));
  CHECK(contains(refused(beyond), "rank 3 of 3 cannot join a run of 3 ranks"));
  CHECK_THROWS_WITH_AS((void)twice.accept_ranks(segment->descriptor(), 1, 1),
                       doctest::Contains("is running on this host"), lockstep::ConfigError);
  auto const joined = peer.join(10);
  CHECK(contains(refused(again), "rank 1 has joined already"));
  auto const last = third.join(10);
  accepting.join();
  CHECK(joined.job == 42);
  CHECK(joined.memory.get() >= 0);
  REQUIRE(connected.size() == 3);
  CHECK(connected[1].get() >= 0);
  CHECK(connected[2].get() >= 0);
}

TEST_CASE("rank: waits for news" * doctest::skip()) {
  run_as_launched_rank([](World& world) {
    Scratch::write("ready" + std::to_string(world.rank), "yes");
    while (world.segment->control().first_failure() < 0) ::usleep(500);
    Scratch::write("saw" + std::to_string(world.rank), std::to_string(world.segment->control().first_failure()));
    return 1;
  });
}

TEST_CASE("a killed rank is named by all survivors, and reported once") {
  NothingLeft const nothing_left;
  for (auto const& kind : {std::pair{0, false}, {2, false}, {0, true}, {2, true}}) {
    int const victim = kind.first;
    bool const several_hosts = kind.second;
    CAPTURE(victim);
    CAPTURE(several_hosts);
    Scratch const scratch;
    auto const pids = start_ranks(3, "rank: waits for news", several_hosts);
    for (int rank = 0; rank < 3; ++rank) await_file("ready" + std::to_string(rank));
    ::kill(pids[static_cast<std::size_t>(victim)], SIGKILL);
    for (int rank = 0; rank < 3; ++rank) {
      auto const code = end_of(pids[static_cast<std::size_t>(rank)]);
      CHECK(code == (rank == victim ? 128 + SIGKILL : 1));
      if (rank != victim) CHECK(Scratch::read("saw" + std::to_string(rank)) == std::to_string(victim));
    }
    auto const report = Scratch::read("report");  // one rank of each host reports if the first rank does not
    CHECK(report.starts_with("rank " + std::to_string(victim) + " (pid "));
    CHECK(report.ends_with(std::string(") is gone: its process was killed, or ended without a message") +
                           (several_hosts ? ", or its host cannot be reached\n" : "\n")));
    CHECK(report.find('\n') == report.size() - 1);
  }
}

TEST_CASE("rank: gives up the first" * doctest::skip()) {
  run_as_launched_rank([](World& world) -> int {
    Scratch::write("ready" + std::to_string(world.rank), "yes");
    while (Scratch::read("stands").empty()) ::usleep(500);
    throw lockstep::RankStalled(0, "rank " + std::to_string(world.rank) + " waits for rank 0");
  });
}

TEST_CASE("a rank that gives up a stopped first rank on another host reports it itself") {
  NothingLeft const nothing_left;
  Scratch const scratch;
  auto const pids = start_ranks(3, "rank: gives up the first", true);
  for (int rank = 0; rank < 3; ++rank) await_file("ready" + std::to_string(rank));
  ::kill(pids[0], SIGSTOP);
  Scratch::write("stands", "yes");
  CHECK(end_of(pids[1]) == 1);
  CHECK(end_of(pids[2]) == 1);
  CHECK(contains(Scratch::read("report"), "failed: rank 1 waits for rank 0"));  // one rank of its host
  CHECK_FALSE(contains(Scratch::read("report"), "rank 2"));
  ::kill(pids[0], SIGKILL);
  (void)end_of(pids[0]);
}

TEST_CASE("rank: has ended when another is lost" * doctest::skip()) {
  run_as_launched_rank([](World& world) {
    if (world.rank == 0) return 0;
    Scratch::write("ready" + std::to_string(world.rank), "yes");
    auto const& control = world.segment->control();
    auto const limit = lockstep::deadline_in(30);
    while (!control.has_ended(2) && lockstep::Clock::nanoseconds() < limit) ::usleep(500);
    Scratch::write("seen" + std::to_string(world.rank), control.has_ended(2) ? "over" : "alive");
    return 0;
  });
}

TEST_CASE("a rank lost after the first one's work is done is noticed anyway") {
  NothingLeft const nothing_left;
  for (bool const several_hosts : {false, true}) {
    CAPTURE(several_hosts);
    Scratch const scratch;
    auto const pids = start_ranks(3, "rank: has ended when another is lost", several_hosts);
    await_file("ready1"), await_file("ready2");
    ::usleep(300'000);  // longer than the grace period, which healthy ranks need not keep
    ::kill(pids[2], SIGKILL);
    CHECK(end_of(pids[1]) == 0);
    CHECK(Scratch::read("seen1") == "over");
    CHECK(end_of(pids[0]) == 0);
    CHECK(contains(Scratch::read("report"), "rank 2"));
    (void)end_of(pids[2]);
  }
}

TEST_CASE("rank: receives an ignored signal" * doctest::skip()) {
  if (std::getenv("LOCKSTEP_TEST_SCRATCH") == nullptr) return;
  ::signal(SIGINT, SIG_IGN);
  launch::Options options;
  std::_Exit(launch::run(options, [](World& world) {
    if (world.rank == 1) ::kill(::getpid(), SIGINT);
    ::usleep(400'000);
    auto const& control = world.segment->control();
    return control.first_failure() < 0 ? 0 : 3;
  }));
}

TEST_CASE("an ignored signal ends no rank") {
  NothingLeft const nothing_left;
  Scratch const scratch;
  for (auto const pid : start_ranks(2, "rank: receives an ignored signal")) CHECK(end_of(pid) == 0);
}

TEST_CASE("rank: throws on its own" * doctest::skip()) {
  run_as_launched_rank([](World& world) -> int {
    if (world.rank == 1) throw lockstep::DataError("train.csv:17: two columns, three expected");
    while (world.segment->control().first_failure() < 0) ::usleep(500);
    return 1;
  });
}

TEST_CASE("an exception of a rank is reported once, with the exit code of its type") {
  for (bool const several_hosts : {false, true}) {
    Scratch const scratch;
    auto const pids = start_ranks(3, "rank: throws on its own", several_hosts);
    CHECK(end_of(pids[0]) == 1);
    CHECK(end_of(pids[1]) == 2);
    CHECK(end_of(pids[2]) == 1);
    CHECK(Scratch::read("report").ends_with(") failed: train.csv:17: two columns, three expected\n"));
    CHECK(Scratch::read("report").starts_with("rank 1 (pid "));
    CHECK(Scratch::read("report").find('\n') == Scratch::read("report").size() - 1);
  }
}

TEST_CASE("rank: never checks for news" * doctest::skip()) {
  run_as_launched_rank([](World& world) -> int {
    Scratch::write("ready" + std::to_string(world.rank), "yes");
    for (;;) ::pause();
  });
}

TEST_CASE(
    "SIGTERM ends a rank as usual; after a failure the verdict comes first, even from a rank that does not check") {
  NothingLeft const nothing_left;
  for (auto const& kind : {std::pair{false, false}, {true, false}, {false, true}, {true, true}}) {
    bool const failure = kind.first, several_hosts = kind.second;
    CAPTURE(failure);
    CAPTURE(several_hosts);
    Scratch const scratch;
    auto const pids = start_ranks(2, "rank: never checks for news", several_hosts);
    await_file("ready0");
    await_file("ready1");
    ::kill(pids[1], failure ? SIGKILL : SIGTERM);
    ::kill(pids[0], SIGTERM);
    CHECK(end_of(pids[0]) == 128 + SIGTERM);
    CHECK(end_of(pids[1]) == 128 + (failure ? SIGKILL : SIGTERM));
    if (failure) CHECK(Scratch::read("report").starts_with("rank 1 (pid "));
    if (!failure) CHECK(Scratch::read("report").empty());
  }
}

TEST_CASE("a lost rank is reported at once, whether or not a rank checks; how a rank ended is sent to other hosts") {
  for (bool const several_hosts : {false, true}) {
    CAPTURE(several_hosts);
    Scratch const scratch;
    auto const pids =
        start_ranks(2, several_hosts ? "rank: waits for news" : "rank: never checks for news", several_hosts);
    await_file("ready0");
    await_file("ready1");
    ::kill(pids[1], several_hosts ? SIGTERM : SIGKILL);
    await_file("report");
    CHECK(contains(Scratch::read("report"), several_hosts ? ") was killed by signal 15 (Terminated)" : ") is gone"));
    ::kill(pids[0], SIGKILL);
    for (auto const pid : pids) (void)end_of(pid);
  }
}

TEST_CASE("rank: takes its time" * doctest::skip()) {
  run_as_launched_rank(
      [](World& world) -> int {
        Scratch::write("ready" + std::to_string(world.rank), "yes");
        while (world.segment->control().first_failure() < 0) ::usleep(500);
        ::usleep(400'000);
        return 7;
      },
      60, 30);
}

TEST_CASE("a rank that gets SIGTERM after a failure has time to end by itself") {
  Scratch const scratch;
  auto const pids = start_ranks(2, "rank: takes its time");
  await_file("ready0");
  await_file("ready1");
  ::kill(pids[1], SIGKILL);
  ::kill(pids[0], SIGTERM);
  CHECK(end_of(pids[0]) == 7);
  (void)end_of(pids[1]);
}

TEST_CASE("rank: stops on request" * doctest::skip()) {
  run_as_launched_rank(
      [](World& world) -> int {
        auto const token = world.stop_request->token();
        Scratch::write("ready" + std::to_string(world.rank), "yes");
        while (!token.stop_requested() && world.segment->control().first_failure() < 0) ::usleep(500);
        Scratch::write("asked" + std::to_string(world.rank), token.stop_requested() ? "yes" : "no");
        if (world.rank == 0) ::usleep(400'000);
        while (Scratch::read("ignores signals") == "yes") ::usleep(500);
        return 128 + world.stop_request->signal();
      },
      60, 0.1, launch::OnSignal::request_stop);
}

TEST_CASE("a rank that SIGTERM stops has the time it needs; after a second signal, or a failure, it ends as usual") {
  NothingLeft const nothing_left;
  enum class Then { nothing, asked_again, failed };
  for (auto const then : {Then::nothing, Then::asked_again, Then::failed})
    for (bool const several_hosts : {false, true}) {
      CAPTURE(static_cast<int>(then));
      CAPTURE(several_hosts);
      Scratch const scratch;
      if (then == Then::asked_again) Scratch::write("ignores signals", "yes");
      auto const pids = start_ranks(2, "rank: stops on request", several_hosts);
      await_file("ready0");
      await_file("ready1");
      if (then == Then::failed) {
        ::kill(pids[1], SIGKILL);
        await_file("asked0");
        CHECK(Scratch::read("asked0") == "no");
        Scratch::write("ignores signals", "yes");
        ::kill(pids[0], SIGTERM);
        CHECK(end_of(pids[0]) == 128 + SIGTERM);
        CHECK(end_of(pids[1]) == 128 + SIGKILL);
        CHECK(Scratch::read("report").starts_with("rank 1 (pid "));
        continue;
      }
      for (auto const pid : pids) ::kill(pid, SIGTERM);
      await_file("asked0");
      await_file("asked1");
      if (then == Then::asked_again) {
        ::usleep(1'200'000);
        for (auto const pid : pids) ::kill(pid, SIGTERM);
      }
      for (auto const pid : pids) CHECK(end_of(pid) == 128 + SIGTERM);
      CHECK(Scratch::read("report").empty());
    }
}

TEST_CASE("launcher: starts one rank and waits" * doctest::skip()) {
  if (std::getenv("LOCKSTEP_TEST_SCRATCH") == nullptr) return;
  (void)start(command_of("rank: never checks for news"), variables_of(0, 2, "1"));
  for (;;) ::pause();
}

TEST_CASE("ranks end with their launcher") {
  NothingLeft const nothing_left;
  Scratch const scratch;
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // orphans become children of this process, which can then wait for their end
  auto const launcher = start(command_of("launcher: starts one rank and waits"));
  auto const other = start(command_of("rank: never checks for news"), variables_of(1, 2, "1"));
  await_file("ready0");
  await_file("ready1");
  ::kill(launcher, SIGKILL);
  CHECK(end_of(launcher) == 128 + SIGKILL);
  int status = 0;
  pid_t orphan = 0;
  while (orphan == 0 || orphan == other) orphan = ::waitpid(-1, &status, 0);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGTERM);
  ::kill(other, SIGKILL);
  (void)::waitpid(other, &status, 0);
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

TEST_CASE("without names from the launcher, ranks are distinguished by their parent process") {
  launch::Lookup const nothing{[](void const*, char const*) -> char const* { return nullptr; }};
  launch::Environment const place{launch::Launcher::mvapich, 1, 4, 1, 4, 0, ""};
  CHECK(launch::detail::job_key(place, nothing) == "mpirun_rsh parent=" + std::to_string(::getppid()) + " size=4");
  CHECK(launch::detail::job_key({launch::Launcher::torchrun, 1, 2, 1, 2, 0, ""},
                                {[](void const*, char const* name) -> char const* {
                                  return std::string_view(name) == "TORCHELASTIC_RUN_ID" ? "x" : nullptr;
                                }}) == "torchrun TORCHELASTIC_RUN_ID=x size=2");
}

TEST_CASE("a program started by a launcher starts no ranks of its own, and joins no other host") {
  auto const place = [](int size, int local) {
    return launch::Environment{launch::Launcher::slurm, 0, size, 0, local, 0, "SLURM_STEP_NUM_TASKS=4"};
  };
  CHECK_NOTHROW(launch::detail::check(place(4, 4), launch::Options{}));
  CHECK_THROWS_WITH_AS(launch::detail::check(place(4, 4), {.nproc = 2}), doctest::Contains("each would start 2 more"),
                       lockstep::ConfigError);
  CHECK_THROWS_WITH_AS(launch::detail::check(place(4, 2), launch::Options{}), doctest::Contains("several hosts"),
                       lockstep::ConfigError);
  CHECK_NOTHROW(launch::detail::check(place(4, 2), {.engine = launch::Engine::mpi}));
  CHECK_NOTHROW(launch::detail::check(place(4, 2), {.engine = launch::Engine::nccl}));
  CHECK_THROWS_WITH_AS(launch::detail::check(place(300, 2), {.engine = launch::Engine::nccl}),
                       doctest::Contains("at most 256 ranks can join"), lockstep::ConfigError);
  auto torchrun = place(4, 2);
  torchrun.launcher = launch::Launcher::torchrun;
  CHECK_THROWS_WITH_AS(launch::detail::check(torchrun, {.engine = launch::Engine::mpi}),
                       doctest::Contains("MPI does not know them"), lockstep::ConfigError);
  CHECK_THROWS_WITH_AS(launch::detail::check(place(4, 4), {.engine = launch::Engine::thread}),
                       doctest::Contains("'thread' does not connect processes"), lockstep::ConfigError);
  CHECK_THROWS_AS(launch::detail::check(place(300, 300), launch::Options{}), lockstep::ConfigError);
}

namespace {

/// Runs the test program's case under a launcher; returns what its three ranks reported of their world.
void check_launched(Texts launcher) {
  NothingLeft const nothing_left;
  Scratch const scratch;
  auto const command = command_of("rank: tells its world");
  launcher.insert(launcher.end(), command.begin(), command.end());
  CHECK(end_of(start(launcher, {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"})) == 0);
  auto const first = Scratch::read("world0");
  CHECK(first.starts_with("3 0 process 0 "));
  CHECK(Scratch::read("world2").substr(11) == first.substr(11));
}

bool runs(std::string const& command) { return std::system((command + " >/dev/null 2>&1").c_str()) == 0; }

}  // namespace

TEST_CASE("under a real mpirun") {
  REQUIRE(runs("mpirun.openmpi --version"));
  check_launched({"mpirun.openmpi", "--oversubscribe", "-n", "3"});
  if (runs("mpirun.mpich --version"))
    check_launched({"mpirun.mpich", "-n", "3"});
  else
    MESSAGE("skipped: MPICH's mpirun is not here");
}

TEST_CASE("under a real torchrun") {
  auto const& python = lockstep_test::python();
  if (!runs(python + " -c 'import torch'")) return skip(Need::torch, "torchrun");
  check_launched({python, "-m", "torch.distributed.run", "--no-python", "--standalone", "--nproc-per-node", "3"});
}
