// SPDX-License-Identifier: Apache-2.0
// Prints the line of component.cpp, linked with lockstep::compiled_app.
#include <cstdint>
#include <cstdio>

#include <lockstep/app/command.hpp>
#include <lockstep/core/philox.hpp>

int main() {
  std::uint64_t seed = 0;
  lockstep::app::Command command;
  command.add("--seed", seed, 0, 100, "Random seed");
  char const* const arguments[] = {"linked_app", "--seed", "7"};
  if (!command.parse(3, arguments)) return 1;
  lockstep::Philox const random(seed);
  std::printf("Lockstep %s draws %08x\n", lockstep::version, random({0, 0, 0, 0})[0]);
}
