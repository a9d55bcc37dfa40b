// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdio>

namespace lockstep_bench {

/// The child side of Peer (peer.hpp): prints "ready", reads numbers, and answers each with f(number). Return its result
/// from main.
template <class F>
int answer_each(F&& f) {
  std::puts("ready");
  std::fflush(stdout);
  for (double number = 0; std::scanf("%lf", &number) == 1;) {
    std::printf("%.9g\n", static_cast<double>(f(number)));
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace lockstep_bench
