// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace lockstep_bench {

/// A child process that works on request: it prints "ready", reads a number per line and answers each with a number. It
/// ends with this object.
class Peer {
 public:
  /// Empty if the program ends before it is ready.
  static std::optional<Peer> start(std::vector<std::string> arguments) {
    Peer peer;
    peer.spawn(arguments);
    if (peer.line() != "ready") return std::nullopt;
    return peer;
  }
  Peer(Peer&& other) noexcept
      : child_(std::exchange(other.child_, -1)),
        to_(std::exchange(other.to_, nullptr)),
        from_(std::exchange(other.from_, nullptr)) {}
  Peer& operator=(Peer&&) = delete;
  ~Peer() {
    if (to_ != nullptr) std::fclose(to_);
    if (from_ != nullptr) std::fclose(from_);
    if (child_ > 0) waitpid(child_, nullptr, 0);
  }

  double operator()(double number) {
    send(number);
    return answer();
  }
  /// The two halves, for peers that work concurrently.
  void send(double number) {
    std::fprintf(to_, "%.9g\n", number);
    std::fflush(to_);
  }
  double answer() {
    auto const text = line();
    if (text.empty()) {
      std::fprintf(stderr, "a peer ended before it answered\n");
      std::exit(1);
    }
    return std::stod(text);
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

}  // namespace lockstep_bench
