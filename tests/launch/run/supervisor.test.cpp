// SPDX-License-Identifier: Apache-2.0
#include <lockstep/launch/run/supervisor.hpp>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <iterator>
#include <string>

#include "launch/ranks.hpp"

using namespace lockstep_test;
using launch::World;

namespace {

/// A survivor without a communicator: waits until it learns of a failure.
int await_failure(World& world) {
  while (world.segment->control().first_failure() < 0) ::usleep(500);
  return 1;
}

[[noreturn]] void sleep_for_ever() {
  for (;;) ::pause();
}

/// Restarts this program with one hidden case, which is itself a supervisor.
pid_t start_case(std::string const& name) {
  std::string const filter = "--test-case=" + name;
  char const* const arguments[] = {"/proc/self/exe", filter.c_str(), "--no-skip=true", nullptr};
  pid_t pid = 0;
  REQUIRE(::posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr, const_cast<char**>(arguments), environ) == 0);
  return pid;
}

void await_file(std::string const& name) {
  while (Scratch::read(name).empty()) ::usleep(500);
}

}  // namespace

TEST_CASE("rank: succeeds" * doctest::skip()) {
  be_rank([](World&) { return 0; });
}

TEST_CASE("if all ranks succeed, the run succeeds and reports nothing") {
  NothingLeft const nothing_left;
  for (int const n : {2, 3, 8}) {
    auto const outcome = run_processes(n, "rank: succeeds");
    CHECK(outcome.code == 0);
    CHECK(outcome.report.empty());
  }
}

TEST_CASE("rank: ends with 3" * doctest::skip()) {
  be_rank([](World& world) { return world.rank == 1 ? 3 : await_failure(world); });
}

TEST_CASE("the exit code is the first failed rank's") {
  NothingLeft const nothing_left;
  auto const outcome = run_processes(3, "rank: ends with 3");
  CHECK(outcome.code == 3);
  CHECK(outcome.report.starts_with("rank 1 (pid "));
  CHECK(outcome.report.ends_with(") ended with exit code 3"));
}

TEST_CASE("rank: throws" * doctest::skip()) {
  be_rank([](World& world) -> int {
    if (world.rank == 0) throw lockstep::DataError("train.csv:17: two columns, three expected");
    return await_failure(world);
  });
}

TEST_CASE("an exception of a rank is reported once, with the exit code of its type") {
  NothingLeft const nothing_left;
  auto const outcome = run_processes(4, "rank: throws");
  CHECK(outcome.code == 2);
  CHECK(outcome.report.ends_with(") failed: train.csv:17: two columns, three expected"));
}

TEST_CASE("rank: exits before it joins" * doctest::skip()) {
  if (std::getenv("LOCKSTEP_RANK") != nullptr && std::string(std::getenv("LOCKSTEP_RANK")) == "1") std::_Exit(9);
  be_rank([](World& world) { return await_failure(world); });
}

TEST_CASE("a rank that exits before it joins has failed") {
  auto const outcome = run_processes(2, "rank: exits before it joins");
  CHECK(outcome.code == 9);
  CHECK(outcome.report.starts_with("rank 1 (pid "));
  CHECK(outcome.report.ends_with("ended with exit code 9"));
}

TEST_CASE("rank: exits as after a stop request" * doctest::skip()) {
  be_rank([](World& world) { return world.rank == 1 ? 128 + SIGTERM : await_failure(world); });
}

TEST_CASE("the exit code of a stopped rank is a failure if no stop was requested") {
  auto const outcome = run_processes(2, "rank: exits as after a stop request");
  CHECK(outcome.code == 128 + SIGTERM);
  CHECK(outcome.report.ends_with(") ended with exit code 143"));
}

TEST_CASE("rank: exits by itself as after a stop request" * doctest::skip()) {
  be_rank([](World& world) -> int {
    if (world.rank == 1) std::_Exit(143);
    auto const limit = lockstep::deadline_in(30);
    while (!world.segment->control().has_ended(1) && lockstep::Clock::nanoseconds() < limit) ::usleep(500);
    Scratch::write("seen", world.segment->control().has_ended(1) ? "over" : "alive");
    return 0;
  });
}
TEST_CASE("a rank that stops by itself after a signal has ended for ranks that wait for it") {
  Scratch const scratch;
  launch::Options options;
  options.on_signal = launch::OnSignal::request_stop;
  CHECK(run_processes(2, "rank: exits by itself as after a stop request", options).code == 143);
  CHECK(Scratch::read("seen") == "over");
}

TEST_CASE("rank: stops with the rank that got a signal" * doctest::skip()) {
  launch::Options options;
  options.on_signal = launch::OnSignal::request_stop;
  be_rank(
      [](World& world) {
        if (world.rank == 1) ::usleep(100'000);
        return 128 + (world.rank == 0 ? SIGUSR1 : SIGTERM);
      },
      options);
}

TEST_CASE("the exit code of ranks that stop on request is the signal's that one of them got") {
  launch::Options options;
  options.on_signal = launch::OnSignal::request_stop;
  auto const outcome = run_processes(2, "rank: stops with the rank that got a signal", options);
  CHECK(outcome.code == 128 + SIGUSR1);
  CHECK(outcome.report.starts_with("interrupted by signal 10 "));
}

TEST_CASE("rank: crashes" * doctest::skip()) {
  be_rank([](World& world) {
    if (world.rank == 1) ::raise(SIGKILL);
    return await_failure(world);
  });
}

TEST_CASE("a killed rank is reported with its signal") {
  NothingLeft const nothing_left;
  auto const outcome = run_processes(2, "rank: crashes");
  CHECK(outcome.code == 128 + SIGKILL);
  CHECK(outcome.report.ends_with(") was killed by signal 9 (Killed)"));
}

TEST_CASE("rank: crashes after it returned" * doctest::skip()) {
  if (std::getenv("LOCKSTEP_RANK") == nullptr) return;
  (void)launch::run({}, [](World&) { return 0; });
  ::raise(SIGKILL);
}

TEST_CASE("a rank that crashes after its work has failed anyway") {
  CHECK(run_processes(2, "rank: crashes after it returned").code == 128 + SIGKILL);
}

TEST_CASE("rank: ignores signals" * doctest::skip()) {
  be_rank([](World& world) -> int {
    if (world.rank == 1) return 5;
    if (world.rank == 2) ::signal(SIGTERM, SIG_IGN);
    if (world.rank == 3) ::raise(SIGSTOP);
    sleep_for_ever();
  });
}

TEST_CASE("a rank that does not end is terminated, then killed, even if it is stopped") {
  NothingLeft const nothing_left;
  launch::Options options;
  options.grace_seconds = 0.1;
  CHECK(run_processes(4, "rank: ignores signals", options).code == 5);
}

TEST_CASE("rank: tidies up" * doctest::skip()) {
  be_rank([](World& world) -> int {
    if (world.rank == 1) return 5;
    (void)await_failure(world);
    ::usleep(100'000);
    Scratch::write("tidy", "yes");
    return 1;
  });
}

TEST_CASE("a rank that ends by itself gets time to do so") {
  Scratch const scratch;
  CHECK(run_processes(2, "rank: tidies up").code == 5);
  CHECK(Scratch::read("tidy") == "yes");
}

TEST_CASE("rank: tidies up when it is terminated" * doctest::skip()) {
  be_rank([](World& world) -> int {
    if (world.rank == 1) return 5;
    static std::string const tidy = Scratch::path("tidy");
    ::signal(SIGTERM, [](int) {
      ::usleep(100'000);
      auto const file = ::open(tidy.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);  // no allocations
      static_cast<void>(::write(file, "terminated", 10) == 10);
      std::_Exit(1);
    });
    sleep_for_ever();
  });
}

TEST_CASE("a terminated rank gets a moment before it is killed") {
  Scratch const scratch;
  launch::Options options;
  options.grace_seconds = 1;
  CHECK(run_processes(2, "rank: tidies up when it is terminated", options).code == 5);
  CHECK(Scratch::read("tidy") == "terminated");
}

TEST_CASE("rank: records its inheritance" * doctest::skip()) {
  be_rank([](World& world) {
    std::string files;
    for (auto const& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      files += std::filesystem::read_symlink(entry.path(), gone).string() + "\n";
    }
    sigset_t blocked;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    bool const open_to_signals = ::sigismember(&blocked, SIGINT) == 0 && ::sigismember(&blocked, SIGTERM) == 0;
    Scratch::write("rank" + std::to_string(world.rank),
                   files + (open_to_signals ? "open to signals" : "ignores signals"));
    return 0;
  });
}

TEST_CASE("a rank inherits only the shared memory from the supervisor") {
  NothingLeft const nothing_left;
  Scratch const scratch;
  CHECK(run_processes(3, "rank: records its inheritance").code == 0);
  for (int const rank : {0, 1, 2}) {
    auto const text = Scratch::read("rank" + std::to_string(rank));
    CAPTURE(text);
    CHECK(text.find("memfd:lockstep") == text.rfind("memfd:lockstep"));
    CHECK(contains(text, "memfd:lockstep"));
    CHECK_FALSE(contains(text, "eventfd"));
    CHECK_FALSE(contains(text, "pidfd"));
    CHECK(contains(text, "open to signals"));
  }
  sigset_t blocked;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  CHECK(::sigismember(&blocked, SIGINT) == 0);
}

TEST_CASE("if the system refuses a process, the started ranks are ended") {
  NothingLeft const nothing_left;
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  // Output, signals, memory and one watch take the next five descriptors, which need not be adjacent: this process
  // inherits those of the shell.
  int next[5];
  for (int& descriptor : next) descriptor = ::dup(0);
  for (int const descriptor : next) ::close(descriptor);
  rlimit tight = before;
  tight.rlim_cur = static_cast<rlim_t>(next[4]) + 1;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &tight) == 0);
  launch::Options options;
  options.nproc = 4;
  options.arguments = {"/proc/self/exe", "--test-case=rank: ignores signals", "--no-skip=true"};
  std::string message;
  try {
    (void)launch::run(options, [](World&) { return 0; });
  } catch (lockstep::ConfigError const& error) {
    message = error.what();
  }
  ::setrlimit(RLIMIT_NOFILE, &before);
  CAPTURE(message);
  CHECK(contains(message, "the system refused to watch rank 1 (pidfd_open): Too many open files"));
}

TEST_CASE("supervisor: waits" * doctest::skip()) {
  if (std::getenv("LOCKSTEP_RANK") != nullptr) {
    be_rank([](World& world) -> int {
      Scratch::write("ready" + std::to_string(world.rank), std::to_string(::getpid()));
      sleep_for_ever();
    });
  }
  launch::Options options;
  options.max_restarts = 1;
  auto const outcome = run_processes(2, "supervisor: waits", options);
  Scratch::write("report", outcome.report);
  std::_Exit(outcome.code);
}

TEST_CASE("signals to the supervisor reach the ranks") {
  NothingLeft const nothing_left;
  for (int const signal : {SIGINT, SIGTERM}) {
    Scratch const scratch;
    auto const supervisor = start_case("supervisor: waits");
    await_file("ready0");
    await_file("ready1");
    ::kill(supervisor, signal);
    int status = 0;
    REQUIRE(::waitpid(supervisor, &status, 0) == supervisor);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 128 + signal);
    CHECK(Scratch::read("report").starts_with("interrupted by signal " + std::to_string(signal)));
    CHECK_FALSE(contains(Scratch::read("report"), "restarted"));
  }
}

TEST_CASE("supervisor: stops on request" * doctest::skip()) {
  launch::Options options;
  options.on_signal = launch::OnSignal::request_stop;
  options.grace_seconds = 0.05;
  options.max_restarts = 1;
  be_rank(
      [](World& world) -> int {
        auto const token = world.stop_request->token();
        ::usleep(1);  // in a thread's first wait ThreadSanitizer of clang 14 may lose a signal
        Scratch::write("ready" + std::to_string(world.rank), std::to_string(::getpid()));
        while (!token.stop_requested()) ::usleep(500);
        Scratch::write("asked" + std::to_string(world.rank), "yes");
        if (world.rank == 0) ::usleep(400'000);  // it saves while the others have ended
        Scratch::write("saved" + std::to_string(world.rank), "yes");
        while (Scratch::read("ignores signals") == "yes") ::usleep(500);
        return 128 + world.stop_request->signal();
      },
      options);
  auto const outcome = run_processes(2, "supervisor: stops on request", options);
  Scratch::write("report", outcome.report);
  std::_Exit(outcome.code);
}

TEST_CASE(
    "ranks have the time they need to stop on request, and are not restarted; a second signal ends them at once") {
  NothingLeft const nothing_left;
  struct Case {
    int first, second, code;
  };
  for (auto const& c :
       {Case{SIGTERM, 0, 143}, Case{SIGUSR1, 0, 138}, Case{SIGUSR1, SIGINT, 130}, Case{SIGTERM, SIGTERM, 143}}) {
    CAPTURE(c.first);
    CAPTURE(c.second);
    Scratch const scratch;
    if (c.second != 0) Scratch::write("ignores signals", "yes");
    auto const supervisor = start_case("supervisor: stops on request");
    await_file("ready0");
    await_file("ready1");
    ::kill(supervisor, c.first);
    if (c.second != 0) {
      await_file("asked0");
      if (c.second == c.first) ::usleep(1'300'000);
      ::kill(supervisor, c.second);
    }
    int status = 0;
    REQUIRE(::waitpid(supervisor, &status, 0) == supervisor);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == c.code);
    CHECK(Scratch::read("report").starts_with("interrupted by signal " + std::to_string(c.code - 128)));
    CHECK_FALSE(contains(Scratch::read("report"), "restarted"));
    if (c.second == 0) CHECK(Scratch::read("saved0") + Scratch::read("saved1") == "yesyes");
  }
}

TEST_CASE("supervisor: writes to a full pipe" * doctest::skip()) {
  be_rank([](World& world) -> int {
    Scratch::write("ready" + std::to_string(world.rank), "yes");
    for (std::string const line(1000, 'x');;) std::fprintf(stderr, "%s\n", line.c_str());
  });
  ::signal(SIGTERM, SIG_DFL);  // doctest reports it as a crash
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  auto const write = [file = ends[1]](std::string const& text) {
    return ::write(file, text.data(), text.size()) == std::ssize(text);
  };
  launch::Options options;
  options.grace_seconds = 0.2;
  options.nproc = 2;
  options.arguments = {"test", "--test-case=supervisor: writes to a full pipe", "--no-skip=true"};
  options.line = [&](int, int, std::string const& line) {
    Scratch::write("line", "yes");
    static_cast<void>(write(line));
  };
  options.report = [&](std::string const& text) { static_cast<void>(write(text)); };
  std::_Exit(launch::run(options, [](World&) { return 99; }));
}

TEST_CASE("a supervisor with a full output pipe still receives signals, and ends") {
  NothingLeft const nothing_left;
  Scratch const scratch;
  auto const supervisor = start_case("supervisor: writes to a full pipe");
  await_file("ready1");
  await_file("line");
  ::usleep(200'000);  // in which the pipe fills up
  ::kill(supervisor, SIGTERM);
  int status = 0;
  auto const limit = lockstep::deadline_in(20);
  while (::waitpid(supervisor, &status, WNOHANG) == 0) {
    if (lockstep::Clock::nanoseconds() > limit) ::kill(supervisor, SIGKILL);
    ::usleep(1000);
  }
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGTERM);
}

TEST_CASE("supervisor: has a rank that fails on a stop request" * doctest::skip()) {
  auto const name = "supervisor: has a rank that fails on a stop request";
  be_rank([](World& world) -> int {
    if (world.rank == 1) ::signal(SIGTERM, [](int) { std::_Exit(4); });
    if (world.rank == 0) ::signal(SIGTERM, SIG_IGN);
    Scratch::write("ready" + std::to_string(world.rank), "yes");
    return await_failure(world);
  });
  auto const outcome = run_processes(2, name);
  Scratch::write("report", outcome.report);
  std::_Exit(outcome.code);
}

TEST_CASE("a rank that fails while it stops on request is reported as failed, not as interrupted") {
  Scratch const scratch;
  auto const supervisor = start_case("supervisor: has a rank that fails on a stop request");
  await_file("ready0");
  await_file("ready1");
  ::kill(supervisor, SIGTERM);
  int status = 0;
  REQUIRE(::waitpid(supervisor, &status, 0) == supervisor);
  CHECK(WEXITSTATUS(status) == 4);
  CHECK(Scratch::read("report").ends_with(") ended with exit code 4"));
}

TEST_CASE("ranks end with a killed supervisor") {
  NothingLeft const nothing_left;
  Scratch const scratch;
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // orphans become children of this process, which can then wait for their end
  auto const supervisor = start_case("supervisor: waits");
  await_file("ready0");
  await_file("ready1");
  ::kill(supervisor, SIGKILL);
  int ended = 0, status = 0;
  for (pid_t pid = ::wait(&status); pid > 0; pid = ::wait(&status)) {
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == SIGKILL);
    ++ended;
  }
  CHECK(ended == 3);
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

TEST_CASE("supervisor: ignores SIGCHLD" * doctest::skip()) {
  if (std::getenv("LOCKSTEP_RANK") == nullptr) ::signal(SIGCHLD, SIG_IGN);
  be_rank([](World& world) {
    if (Scratch::read("all is well") == "yes") return 0;
    if (world.rank == 1) ::raise(SIGKILL);
    return await_failure(world);
  });
  auto const outcome = run_processes(3, "supervisor: ignores SIGCHLD");
  Scratch::write("report", outcome.report);
  std::_Exit(outcome.code);
}

TEST_CASE("a supervisor that ignores SIGCHLD learns at least that its children ended") {
  NothingLeft const nothing_left;
  Scratch const scratch;
  auto const supervisor = start_case("supervisor: ignores SIGCHLD");
  int status = 0;
  REQUIRE(::waitpid(supervisor, &status, 0) == supervisor);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 1);
  CHECK(contains(Scratch::read("report"), "rank 1 (pid "));
  CHECK(contains(Scratch::read("report"), "ignores SIGCHLD"));
  Scratch::write("all is well", "yes");
  auto const second = start_case("supervisor: ignores SIGCHLD");
  REQUIRE(::waitpid(second, &status, 0) == second);
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(Scratch::read("report").empty());
}

TEST_CASE("supervisor: starts a rank after another's process group is gone" * doctest::skip()) {
  ::signal(SIGCHLD, SIG_IGN);
  launch::Options const options;
  launch::detail::RankOutput output(options);
  launch::detail::RankProcesses ranks;
  sigset_t none;
  ::sigemptyset(&none);
  for (std::size_t rank : {0u, 1u}) {
    ranks.spawn({"test", "--version"}, {.rank = static_cast<int>(rank), .size = 2, .memory = 0}, none, output);
    while (::kill(ranks.all()[rank].pid, 0) == 0) ::usleep(500);
  }
  std::_Exit(55);
}

TEST_CASE("if SIGCHLD is ignored, ranks start although the first has ended") {
  auto const supervisor = start_case("supervisor: starts a rank after another's process group is gone");
  int status = 0;
  REQUIRE(::waitpid(supervisor, &status, 0) == supervisor);
  CHECK(WEXITSTATUS(status) == 55);
}

TEST_CASE("rank: leaves a child" * doctest::skip()) {
  be_rank([](World& world) -> int {
    if (world.rank == 1) return await_failure(world);
    CHECK(::write(2, "last words", 10) == 10);
    char const* const arguments[] = {"sleep", "1000", nullptr};
    pid_t pid = 0;
    if (::posix_spawnp(&pid, "sleep", nullptr, nullptr, const_cast<char**>(arguments), environ) != 0) return 77;
    return 5;
  });
}

TEST_CASE("child processes of a failed rank end too") {
  NothingLeft const nothing_left;
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  launch::Options options;
  std::string lines;
  options.line = [&](int rank, int, std::string const& line) { lines += rank == 0 ? line : ""; };
  CHECK(run_processes(2, "rank: leaves a child", options).code == 5);
  CHECK(lines == "last words");  // although the child could still write to them
  int status = 0;
  CHECK(::wait(&status) > 0);
  CHECK(WIFSIGNALED(status));
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

TEST_CASE("rank: fails twice" * doctest::skip()) {
  be_rank([](World& world) -> int {
    if (world.restarts == 2) return 0;
    if (world.rank == 1) return 7;
    return await_failure(world);
  });
}

TEST_CASE("all ranks are restarted up to the limit") {
  NothingLeft const nothing_left;
  launch::Options options;
  options.max_restarts = 1;
  auto outcome = run_processes(2, "rank: fails twice", options);
  CHECK(outcome.code == 7);
  CHECK(contains(outcome.report, "exit code 7; all ranks are restarted, 1 of 1rank 1 (pid "));
  options.max_restarts = 5;
  outcome = run_processes(2, "rank: fails twice", options);
  CHECK(outcome.code == 0);
  CHECK(contains(outcome.report, "restarted, 2 of 5"));
  CHECK_FALSE(contains(outcome.report, "3 of 5"));
}

TEST_CASE("invalid input is not retried") {
  launch::Options options;
  options.max_restarts = 5;
  auto const outcome = run_processes(2, "rank: throws", options);
  CHECK(outcome.code == 2);
  CHECK_FALSE(contains(outcome.report, "restarted"));
}

TEST_CASE("rank: writes" * doctest::skip()) {
  be_rank([](World& world) {
    auto const rank = std::to_string(world.rank);
    auto const say = [](int stream, std::string const& text) {
      CHECK(::write(stream, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    };
    struct stat to {};
    CHECK(::fstat(1, &to) == 0);
    if (world.rank == 0) Scratch::write("stream 1 of 0", std::to_string(to.st_ino));
    if (world.rank != 0) say(1, "first of " + rank + "\nsecond ");
    say(2, std::string(5000, 'x') + "\n");
    if (world.rank != 0) say(1, "of " + rank);
    return 0;
  });
}

TEST_CASE("rank: never stops writing" * doctest::skip()) {
  be_rank([](World& world) -> int {
    auto const line = std::string(1023, 'x') + "\n";
    while (world.rank == 1) (void)!::write(1, line.data(), line.size());
    ::usleep(50'000);
    return 5;
  });
}

TEST_CASE("a rank that never stops writing does not keep the run from ending") {
  NothingLeft const nothing_left;
  launch::Options options;
  options.grace_seconds = 0.1;
  long lines = 0;
  options.line = [&](int, int, std::string const&) {
    ++lines;
    ::usleep(100);  // it writes faster than it is read
  };
  CHECK(run_processes(2, "rank: never stops writing", options).code == 5);
  CHECK(lines > 0);
}

TEST_CASE("ranks' lines arrive whole, with rank and stream; the first rank's stdout is unchanged") {
  NothingLeft const nothing_left;
  Scratch const scratch;
  launch::Options options;
  std::multiset<std::string> lines;
  options.line = [&](int rank, int stream, std::string const& line) {
    lines.insert(std::to_string(rank) + std::to_string(stream) + (line.size() == 5000 ? "long" : line));
  };
  CHECK(run_processes(3, "rank: writes", options).code == 0);
  CHECK(lines == std::multiset<std::string>{"02long", "11first of 1", "11second of 1", "12long", "21first of 2",
                                            "21second of 2", "22long"});
  struct stat mine {};
  REQUIRE(::fstat(1, &mine) == 0);
  CHECK(Scratch::read("stream 1 of 0") == std::to_string(mine.st_ino));
}

TEST_CASE("rank: writes without an end of line" * doctest::skip()) {
  be_rank([](World&) {
    std::string const text(200'000, 'x');  // more than a pipe holds
    return ::write(2, text.data(), text.size()) == std::ssize(text) ? 0 : 1;
  });
}

TEST_CASE("a line without an end arrives in parts, while it is written") {
  std::size_t bytes = 0, parts = 0;
  launch::Options options;
  options.line = [&](int, int, std::string const& line) {
    bytes += line.size();
    ++parts;
  };
  CHECK(run_processes(2, "rank: writes without an end of line", options).code == 0);
  CHECK(bytes == 400'000);
  CHECK((parts >= 4 && parts < 20));
}

TEST_CASE("a program's own arguments are those of its start") {
  auto const arguments = launch::detail::own_arguments();
  REQUIRE_FALSE(arguments.empty());
  CHECK(contains(arguments[0], "test.launch."));
}

TEST_CASE("supervisor: without pidfd_open" * doctest::skip()) {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog const program{static_cast<unsigned short>(std::size(rules)), rules};
  bool const refused = ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                       ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 &&
                       ::syscall(SYS_pidfd_open, ::getpid(), 0) < 0;
  if (!refused) std::_Exit(77);
  auto const good = run_processes(3, "rank: succeeds"), bad = run_processes(3, "rank: ends with 3");
  std::_Exit(good.code == 0 && bad.code == 3 && bad.report.ends_with("ended with exit code 3") ? 0 : 1);
}

TEST_CASE("ranks are watched without pidfd_open, as on kernels before 5.3 and in some sandboxes") {
  NothingLeft const nothing_left;
  auto const pid = start_case("supervisor: without pidfd_open");
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("supervisor: by a loader" * doctest::skip()) {
  auto const named = run_processes(2, "rank: succeeds");
  launch::Options options;
  options.nproc = 2;
  options.arguments = launch::detail::own_arguments();  // with the loader's, as if no arguments were given
  for (auto& word : options.arguments)
    if (word.starts_with("--test-case=")) word = "--test-case=rank: succeeds";
  std::_Exit(named.code == 0 && launch::run(options, [](World&) { return 99; }) == 0 ? 0 : 1);
}

TEST_CASE("a program that an explicit loader has started starts its ranks in the same way") {
  NothingLeft const nothing_left;
  auto const program = std::filesystem::read_symlink("/proc/self/exe").string();
  for (std::string const loader : {"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"}) {
    if (!std::filesystem::exists(loader)) continue;
    char const* const arguments[] = {loader.c_str(), program.c_str(), "--test-case=supervisor: by a loader",
                                     "--no-skip=true", nullptr};
    pid_t pid = 0;
    REQUIRE(::posix_spawn(&pid, loader.c_str(), nullptr, nullptr, const_cast<char**>(arguments), environ) == 0);
    int status = 0;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
  }
}
