// SPDX-License-Identifier: Apache-2.0
// What a component asks for is found and linked; the umbrella under its definitions is left to the examples.
#include <cstdio>

#include <lockstep/core/philox.hpp>
#include <lockstep/core/version.hpp>

int main() {
  lockstep::Philox const random(7);
  std::printf("Lockstep %s draws %08x\n", lockstep::version, random({0, 0, 0, 0})[0]);
}
