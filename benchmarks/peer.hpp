// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <list>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <suite.hpp>

extern char** environ;

namespace lockstep_bench {

/// A child process that measures on request: it prints "ready", reads lines `COUNT [WORD…]` and answers each with
/// `SECONDS [NAME VALUE]…`, the time of COUNT iterations and counters. It ends with this object.
class Peer {
 public:
  /// Null if the program ends before it is ready.
  static std::unique_ptr<Peer> start(std::vector<std::string> arguments) {
    std::unique_ptr<Peer> peer(new Peer);
    peer->spawn(arguments);
    if (peer->from_ == nullptr || peer->line() != "ready") return nullptr;
    return peer;
  }
  Peer(Peer const&) = delete;
  Peer& operator=(Peer const&) = delete;
  ~Peer() {
    if (to_ != nullptr) std::fclose(to_);
    if (from_ != nullptr) std::fclose(from_);
    if (child_ > 0) waitpid(child_, nullptr, 0);
  }

  /// The two halves of a request, for peers that work concurrently.
  void send(long count, std::string const& words = {}) {
    std::fprintf(to_, "%ld %s\n", count, words.c_str());
    std::fflush(to_);
  }
  /// @throws std::runtime_error if the process ended
  std::string answer() {
    auto text = line();
    if (text.empty()) throw std::runtime_error("a peer ended before it answered");
    return text;
  }

 private:
  Peer() = default;

  void spawn(std::vector<std::string>& arguments) {
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) return;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    std::vector<char*> argv;
    for (auto& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    if (posix_spawnp(&child_, argv[0], &actions, nullptr, argv.data(), environ) != 0) child_ = -1;
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    to_ = fdopen(in[1], "w");
    from_ = fdopen(out[0], "r");
  }

  std::string line() {
    std::string out;
    for (int c; (c = std::fgetc(from_)) != EOF && c != '\n';) out += static_cast<char>(c);
    return out;
  }

  pid_t child_ = -1;
  std::FILE* to_ = nullptr;
  std::FILE* from_ = nullptr;
};

/// Several processes of one command, each with its number as an additional argument, or one process without.
using PeerGroup = std::vector<std::unique_ptr<Peer>>;

/// Processes that run, by their command: repetitions of a benchmark use one start. The least recently used one of more
/// than eight ends.
class RunningPeers {
 public:
  /// Null if a process does not start; that command is not tried again.
  static PeerGroup* find(std::vector<std::string> const& command, int processes) {
    auto& all = list();
    auto at = all.begin();
    while (at != all.end() && (at->command != command || at->processes != processes)) ++at;
    if (at == all.end()) {
      if (all.size() >= most) all.pop_back();
      all.push_front({command, processes, {}});
      for (int i = 0; i < processes; ++i) {
        auto arguments = command;
        if (processes > 1) arguments.push_back(std::to_string(i));
        auto peer = Peer::start(std::move(arguments));
        if (!peer) {
          all.front().group.clear();
          break;
        }
        all.front().group.push_back(std::move(peer));
      }
    } else {
      all.splice(all.begin(), all, at);
    }
    auto& group = all.front().group;
    return group.empty() ? nullptr : &group;
  }
  static void end() { list().clear(); }

 private:
  struct Entry {
    std::vector<std::string> command;
    int processes;
    PeerGroup group;
  };
  static constexpr std::size_t most = 8;
  static std::list<Entry>& list() {
    static std::list<Entry> all;
    return all;
  }
};

/// A command that is known when a benchmark runs, with the reason to give if it does not start.
struct PeerCommand {
  std::function<std::vector<std::string>()> words;
  std::string reason;
  std::string request = {};  ///< words after the count
  int processes = 1;         ///< they work concurrently; the slowest one's time counts, and their counters are added
};

/// Runs one repetition by a child process and returns the values that it counted.
inline std::map<std::string, double> run_peer(benchmark::State& state, PeerCommand const& command) {
  std::map<std::string, double> sums;
  auto const words = command.words();
  auto* const group = words.empty() ? nullptr : RunningPeers::find(words, command.processes);
  if (group == nullptr) {
    skip(state, command.reason);
    return sums;
  }
  while (state.KeepRunningBatch(state.max_iterations)) {
    double longest = 0;
    for (auto& peer : *group) peer->send(state.max_iterations, command.request);
    for (auto& peer : *group) {
      std::istringstream answer(peer->answer());
      double seconds = 0, value = 0;
      answer >> seconds;
      longest = std::max(longest, seconds);
      for (std::string name; answer >> name >> value;) sums[name] += value;
    }
    state.SetIterationTime(longest);
  }
  for (auto const& [name, value] : sums) {
    if (name == "items") state.SetItemsProcessed(static_cast<std::int64_t>(value));
    if (name == "bytes") state.SetBytesProcessed(static_cast<std::int64_t>(value));
  }
  return sums;
}

/// Registers a benchmark that a child process measures. Its counters `items` and `bytes` become rates, others means of
/// an iteration.
inline auto* add_process(std::string const& name, PeerCommand command) {
  return add(name,
             [command = std::move(command)](benchmark::State& state) {
               for (auto const& [counter, value] : run_peer(state, command))
                 if (counter != "items" && counter != "bytes") state.counters[counter] = per_iteration(value);
             })
      ->UseManualTime();
}
inline auto* add_peer(std::string const& name, std::string const& peer, PeerCommand command) {
  return add_process(name + "/peer:" + peer, std::move(command));
}

/// This program as its own child, in a role.
inline PeerCommand own_role(std::string const& role, std::vector<std::string> arguments, int processes = 1) {
  arguments.insert(arguments.begin(), {"/proc/self/exe", "--role=" + role});
  return {.words = [arguments] { return arguments; },
          .reason = "this program does not start itself as " + role,
          .processes = processes};
}

}  // namespace lockstep_bench
