// SPDX-License-Identifier: Apache-2.0
// A component's dependencies are found and linked; the examples test the umbrella with its definitions.
#include <cstdio>

#include <lockstep/core/philox.hpp>
#include <lockstep/core/version.hpp>

int main() {
  lockstep::Philox const random(7);
  std::printf("Lockstep %s draws %08x\n", lockstep::version, random({0, 0, 0, 0})[0]);
}
