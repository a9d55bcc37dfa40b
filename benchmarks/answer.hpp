// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <cstdio>

namespace lockstep_bench {

/// Answer of a child process: the time of as many iterations as were requested, and their items.
struct Answer {
  double seconds = 0;
  double items = 0;
};

/// The child side of Peer (peer.hpp): prints "ready", reads a count and words per line, and answers each line with
/// f(count). Return its result from main.
template <class Function>
int answer_each(Function&& f) {
  std::puts("ready");
  std::fflush(stdout);
  for (char line[256]; std::fgets(line, sizeof line, stdin) != nullptr;) {
    long count = 0;
    if (std::sscanf(line, "%ld", &count) != 1) break;
    Answer const answer = f(count);
    std::printf("%.9g items %.9g\n", answer.seconds, answer.items);
    std::fflush(stdout);
  }
  return 0;
}

/// Wall-clock seconds of `count` calls.
template <class Function>
double seconds_of(long count, Function&& f) {
  auto const start = std::chrono::steady_clock::now();
  for (long i = 0; i < count; ++i) f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace lockstep_bench
