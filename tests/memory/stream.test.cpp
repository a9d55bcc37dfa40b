// SPDX-License-Identifier: Apache-2.0
#include <lockstep/memory/stream.hpp>

#include <doctest/doctest.h>

TEST_CASE("a host stream provides its pool, also to copies") {
  lockstep::ThreadPool pool(2);
  lockstep::memory::Stream<lockstep::HostSpace> stream{pool};
  auto copy = stream;
  CHECK(&stream.pool() == &pool);
  CHECK(&copy.pool() == &pool);
  int sum = 0;
  copy.pool().run(1, [&](lockstep::Index) { sum = 1; });
  stream.synchronize();
  CHECK(sum == 1);
}
