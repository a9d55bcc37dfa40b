// SPDX-License-Identifier: Apache-2.0
#include <lockstep/memory/deprecated.cuh>

#include <doctest/doctest.h>

#include <type_traits>

using namespace lockstep;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
TEST_CASE("old names of memory are aliases of the new ones") {
  CHECK(std::is_same_v<memory::CudaInbox, memory::CudaPrefetcher>);
  CHECK(std::is_same_v<memory::CudaRecordings<int, int>, memory::CudaGraphCache<int, int>>);
  CHECK(std::is_same_v<decltype(&memory::is_recorded), decltype(&memory::is_capturing)>);
}
#pragma GCC diagnostic pop
