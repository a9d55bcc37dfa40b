// SPDX-License-Identifier: Apache-2.0
#include <lockstep/app/backend.hpp>

#include <doctest/doctest.h>

using namespace lockstep;

namespace {
struct Three {
  static int count() { return 3; }
  static bool have_cudnn() { return true; }
};
struct NoDriver {
  static int count() { throw CudaError("cudaGetDeviceCount: no driver"); }
  static bool have_cudnn() { return false; }
};
}  // namespace

TEST_CASE("a program without CUDA has no GPU, and gives no reason") {
  static_assert(!app::built_with_cuda<>);
  auto const gpus = app::Gpus::detect();
  CHECK_FALSE(gpus.built);
  CHECK(gpus.count == 0);
  CHECK(gpus.why.empty());
}

TEST_CASE("with CUDA the number of GPUs is the driver's, or the driver's error is the reason") {
  CHECK(app::Gpus::detect<Three>().built);
  CHECK(app::Gpus::detect<Three>().count == 3);
  CHECK(app::Gpus::detect<Three>().cudnn);
  auto const none = app::Gpus::detect<NoDriver>();
  CHECK(none.built);
  CHECK_FALSE(none.cudnn);
  CHECK(none.count == 0);
  CHECK(none.why == "cudaGetDeviceCount: no driver");
}
