// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/random/step_key.hpp>

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("a mask's key is made from the step's key and the operation's number") {
  ThreadPool pool(1);
  kernel::StepKey<HostSpace> key;
  for (std::uint64_t step : {0u, 1u, 99u})
    for (std::uint64_t number : {1u, 2u}) {
      key.set(memory::Stream<HostSpace>(pool), step);
      auto const mask = key.mask(number, 7);
      CHECK(mask.key == mix(step, number));
      CHECK(mask.dropped == 7);
      CHECK(mask.resolved().key == mask.key);
    }
}

TEST_CASE("a mask with a pending key equals the mask with the finished key") {
  std::uint64_t step = 5;
  kernel::DropoutMask const unfinished{3, 20'000, &step};
  for (std::uint64_t value : {5u, 6u}) {
    step = value;
    kernel::DropoutMask const finished{mix(value, 3), 20'000};
    CHECK(unfinished.resolved().key == finished.key);
    CHECK(unfinished.resolved().step == nullptr);
    for (std::uint64_t element = 0; element < 100; ++element)
      CHECK(unfinished.keeps(7, element) == finished.keeps(7, element));
  }
}
