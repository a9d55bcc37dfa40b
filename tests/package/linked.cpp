// SPDX-License-Identifier: Apache-2.0
// Prints the line of component.cpp, linked with lockstep::compiled.
#include <cstdio>

#include <lockstep/core/json.hpp>
#include <lockstep/core/philox.hpp>

int main() {
  lockstep::Philox const random(7);
  auto const value = lockstep::json::parse(std::to_string(random({0, 0, 0, 0})[0]), "number");
  std::printf("Lockstep %s draws %08llx\n", lockstep::version, static_cast<unsigned long long>(value.integer()));
}
