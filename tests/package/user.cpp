// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include <lockstep/lockstep.hpp>

int main() {
  lockstep::Philox const random(7);
  std::printf("Lockstep %s draws %08x\n", lockstep::version, random({0, 0, 0, 0})[0]);
}
