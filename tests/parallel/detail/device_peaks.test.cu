// SPDX-License-Identifier: Apache-2.0
#include <lockstep/parallel/detail/device_peaks.cuh>

#include <doctest/doctest.h>

using lockstep::parallel::detail::DevicePeaks;

// Data sheets of an A100 (40 GB) and an H100 (SXM): 312 and 989 TFLOP/s with 16-bit factors, 19.5 and 62 with float (at
// 1.83 GHz), 1.555 and 3.35 TB/s.
TEST_CASE("peak rates of a GPU follow from its attributes, and are 0 for an unknown GPU") {
  auto const a100 = DevicePeaks::of({8, 0, 108, 1410000, 1215000, 5120});
  CHECK(a100.half_operations == doctest::Approx(312e12).epsilon(0.01));
  CHECK(a100.operations == doctest::Approx(19.5e12).epsilon(0.01));
  CHECK(a100.bytes == doctest::Approx(1.555e12).epsilon(0.01));
  auto const h100 = DevicePeaks::of({9, 0, 132, 1830000, 2619000, 5120});
  CHECK(h100.half_operations == doctest::Approx(989e12).epsilon(0.01));
  CHECK(h100.operations == doctest::Approx(61.8e12).epsilon(0.01));
  CHECK(h100.bytes == doctest::Approx(3.35e12).epsilon(0.01));
  auto const other = DevicePeaks::of({99, 0, 100, 1000000, 0, 0});
  CHECK(other.operations + other.half_operations + other.bytes == 0);
}
