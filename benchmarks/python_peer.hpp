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

/// A program of `peers/` that lives as long as this object and works when it is told to: it reads a number of seconds per
/// line and answers with the rate it reached. Its Python is the one that LOCKSTEP_PEER_PYTHON names, or python3.
class PythonPeer {
 public:
  /// Starts peers/<script> with these arguments; empty, and a line on standard output, where that cannot be.
  static std::optional<PythonPeer> start(std::string const& script, std::vector<std::string> arguments) {
    auto const python = interpreter();
    arguments.insert(arguments.begin(), {python, LOCKSTEP_SOURCE_DIR "/benchmarks/peers/" + script});
    PythonPeer peer;
    peer.spawn(arguments);
    if (peer.line() != "ready") {
      std::printf("skipped: %s: %s cannot run it; LOCKSTEP_PEER_PYTHON may name a Python with torch\n", script.c_str(),
                  python.c_str());
      return std::nullopt;
    }
    return peer;
  }
  /// The Python that runs the peers.
  static std::string interpreter() {
    auto const* named = std::getenv("LOCKSTEP_PEER_PYTHON");
    return named != nullptr ? named : "python3";
  }

  PythonPeer(PythonPeer&& other) noexcept
      : child_(std::exchange(other.child_, -1)), to_(std::exchange(other.to_, nullptr)), from_(std::exchange(other.from_, nullptr)) {}
  PythonPeer& operator=(PythonPeer&&) = delete;
  ~PythonPeer() {
    if (to_ != nullptr) std::fclose(to_);
    if (from_ != nullptr) std::fclose(from_);
    if (child_ > 0) waitpid(child_, nullptr, 0);
  }

  /// A turn of so many seconds.
  double operator()(double seconds) {
    tell(seconds);
    return answer();
  }
  /// The two halves of a turn, for peers that work at the same time.
  void tell(double seconds) {
    std::fprintf(to_, "%f\n", seconds);
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
  PythonPeer() = default;

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
