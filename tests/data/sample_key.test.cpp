// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/sample_key.hpp>

#include <cstdint>
#include <set>

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("keys differ by seed, epoch, position and name, also if the sums are equal") {
  std::set<std::uint32_t> seen;
  for (std::uint64_t seed = 0; seed < 6; ++seed)
    for (Index epoch = 0; epoch < 6; ++epoch)
      for (Index position = 0; position < 6; ++position)
        for (auto const* stage : {"crop", "flip"})
          seen.insert(data::SampleKey{seed, epoch, position}.random(stage)(0)[0]);
  CHECK(seen.size() == 6 * 6 * 6 * 2);  // two of 432 random 32-bit numbers are equal with a probability of 2e-5
  CHECK(data::SampleKey{1, 2, 3}.random("crop")(7) == data::SampleKey{1, 2, 3}.random("crop")(7));
}
