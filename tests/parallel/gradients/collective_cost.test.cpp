// SPDX-License-Identifier: Apache-2.0
#include <lockstep/parallel/gradients/collective_cost.hpp>

#include <doctest/doctest.h>

#include <vector>

#include "parallel/delayed_communicator.hpp"

using namespace lockstep;
using parallel::CollectiveCost;

TEST_CASE("a communicator's time per start and per byte is measured") {
  std::vector<float> zeros(CollectiveCost::large / sizeof(float));
  for (double start : {0.0, 2e-6, 50e-6})
    for (double byte : {1e-10, 1e-9}) {
      DelayedCommunicator communicator{start, byte};
      communicator.first_takes = 1e-3;
      auto const cost = CollectiveCost::measure(communicator, zeros);
      // Times near 1 s are multiples of 2^-52; each result is the difference of a few of them.
      CHECK(cost.latency_seconds == doctest::Approx(start).epsilon(1e-6).scale(1e-6));
      CHECK(cost.seconds_per_byte == doctest::Approx(byte).epsilon(1e-6));
    }
  CHECK(zeros == std::vector<float>(zeros.size()));
}

TEST_CASE("a communicator too fast to measure gets the largest buckets") {
  DelayedCommunicator communicator{0, 0};
  std::vector<float> zeros(CollectiveCost::large / sizeof(float));
  CHECK(CollectiveCost::measure(communicator, zeros).bucket_bytes(1 << 30) == CollectiveCost::max_bucket_bytes);
}

TEST_CASE("bucket sizes follow from costs: a power of two, within bounds") {
  CollectiveCost const cost{16e-6, 1e-9};
  // n = sqrt(all 16000): 4 MiB = 2^22 for all = 2^44 / 16000
  auto const mean = std::size_t{1099511627};
  CHECK(cost.bucket_bytes(mean) == std::size_t{4} << 20);
  CHECK(cost.bucket_bytes(mean * 4) == std::size_t{8} << 20);
  CHECK(cost.bucket_bytes(mean / 4) == std::size_t{2} << 20);
  CHECK(cost.bucket_bytes(0) == CollectiveCost::min_bucket_bytes);
  CHECK(cost.bucket_bytes(std::size_t{1} << 50) == CollectiveCost::max_bucket_bytes);
  CHECK(CollectiveCost{0, 1e-9}.bucket_bytes(mean) == CollectiveCost::min_bucket_bytes);
}

TEST_CASE("tables are worth an exchange of bits if half of their bytes take longer than it") {
  // 20 us of a start and 30 us on the host: as long as half of 2 MB at 20 GB/s, or of 40 MB at 400 GB/s
  CHECK(CollectiveCost{20e-6, 1 / 20e9}.min_table_bytes() == doctest::Approx(2e6).epsilon(1e-6));
  CHECK(CollectiveCost{20e-6, 1 / 400e9}.min_table_bytes() == doctest::Approx(40e6).epsilon(1e-6));
  CHECK(CollectiveCost{0, 0}.min_table_bytes() >= std::size_t{1} << 50);
}

TEST_CASE("no other power of two has a lower cost of starts and the last bucket") {
  for (double start : {5e-6, 40e-6, 300e-6})
    for (std::size_t all : {std::size_t{50} << 20, std::size_t{400} << 20, std::size_t{3} << 30}) {
      CollectiveCost const cost{start, 2e-10};
      auto const takes = [&](std::size_t bytes) {
        return static_cast<double>(all) / static_cast<double>(bytes) * start + static_cast<double>(bytes) * 2e-10;
      };
      auto const chosen = cost.bucket_bytes(all);
      for (auto n = CollectiveCost::min_bucket_bytes; n <= CollectiveCost::max_bucket_bytes; n *= 2)
        CHECK(takes(chosen) <= takes(n) * (1 + 1e-12));
    }
}
