// SPDX-License-Identifier: Apache-2.0
// CASE no_exit_code: Lockstep: launch::run takes a function of the rank that returns its exit code
// CASE no_world: Lockstep: launch::run takes a function of the rank that returns its exit code
// LINES 12
#include <lockstep/launch/run/run.hpp>

using namespace lockstep;

int start() {
#if defined(CASE_no_exit_code)
  return launch::run({.threads = 2}, [](launch::World&) {});
#elif defined(CASE_no_world)
  return launch::run({.threads = 2}, [] { return 0; });
#else
  return launch::run({.threads = 2}, [](launch::World&) { return 0; });
#endif
}
