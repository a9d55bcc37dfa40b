// SPDX-License-Identifier: Apache-2.0
#include <lockstep/parallel/device.hpp>

#include <doctest/doctest.h>

#include <lockstep/parallel/detail/device.hpp>

using namespace lockstep;

namespace {
using Host = parallel::detail::Device<HostSpace>;

struct NoClock : Host {
  using Host::Host;
  void now() {}
};
struct NoBatch : Host {
  using Host::Host;
  void copy_to_device(int) {}
};
struct NoLoss : Host {
  using Host::Host;
  using Loss = int;
};
static_assert(parallel::Device<Host>);
static_assert(!parallel::DeviceWithMemory<Host>);
static_assert(!parallel::Device<int>);
static_assert(!parallel::MeasuresWork<NoClock> && parallel::HoldsLoss<NoClock>);
static_assert(!parallel::TakesBatches<NoBatch> && parallel::MovesValues<NoBatch>);
static_assert(!parallel::HoldsLoss<NoLoss> && parallel::RunsRecordings<NoLoss>);
}  // namespace

TEST_CASE("the host's device moves values within its memory and sums the loss of a step") {
  Host device(parallel::Place{.threads = 1});
  float values[]{1, 2, 3}, copied[]{0, 0, 0};
  device.write(values, copied);
  CHECK(copied[2] == 3);
  device.zero(copied, 2);
  CHECK(copied[1] == 0);
  CHECK(copied[2] == 3);
  device.begin_step();
  device.add_loss({2, 1});
  device.add_loss({3, 2});
  device.change_loss([](double* totals) { totals[0] *= 2; });
  CHECK(device.read(device.loss()).sum == 10);
  CHECK(device.read(device.loss()).weight == 3);
}
