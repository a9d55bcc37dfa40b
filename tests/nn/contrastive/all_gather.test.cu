// SPDX-License-Identifier: Apache-2.0
#include <lockstep/cuda.cuh>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/launch/run/run.hpp>
#include <lockstep/parallel/policy/data_parallel.hpp>
#include <lockstep/parallel/policy/distributed_data_parallel.hpp>
#include <lockstep/parallel/policy/on_cuda.hpp>
#include <lockstep/parallel/policy/single_device.hpp>

#include "memory/device.hpp"
#include "parallel/meeting_model.hpp"

using namespace lockstep;

namespace all_gather_on_cuda {
namespace {

using meeting_model::farthest;
using meeting_model::fit;
using meeting_model::Kind;
using meeting_model::Model;
using meeting_model::Outcome;
using parallel::OnCuda;

template <class Connect>
std::vector<Outcome> fit_ranks(Connect const& connect) {
  std::vector<Outcome> all(2);
  launch::run({.threads = 2}, [&](launch::World& world) {
#if defined(LOCKSTEP_NCCL_EMULATION)
    cuda_emulation::OwnDevice const device;
#endif
    all[static_cast<std::size_t>(world.rank)] = fit(OnCuda{parallel::DistributedDataParallel{connect(world), 64, 1}});
    return 0;
  });
  return all;
}

void check_alike(Outcome const& device, Outcome const& host) {
  CHECK(farthest(device.values, host.values) <= meeting_model::rounding);
  CHECK(farthest(device.buffers, host.buffers) <= meeting_model::rounding);
  CHECK(farthest(device.losses, host.losses) <= meeting_model::rounding);
}

}  // namespace

TEST_CASE("on CUDA, too, replicas exchange within a pass, with threads, over the host and over NCCL") {
  if (!lockstep_test::has_gpu("passes in which replicas meet")) return;
  auto const host = fit(parallel::SingleDevice{.threads = 1});
  auto const single = fit(OnCuda{parallel::SingleDevice{}});
  check_alike(single, host);
  CHECK(single.rehearsed == 1);
  auto const dp = fit(OnCuda{parallel::DataParallel{.devices = 2}});
  check_alike(dp, host);
  CHECK(dp.rehearsed == 0);  // passes with exchanges cannot be recorded
  // Sequences, recomputed blocks, and rows gathered first, with batches some of which repeat.
  for (auto kind : {Kind::of_sequences, Kind::recomputed, Kind::gathering})
    for (int devices : {2, 4})
      check_alike(fit(OnCuda{parallel::DataParallel{.devices = devices}}, Model(kind)),
                  fit(parallel::SingleDevice{.threads = 1}, Model(kind)));
  for (auto const& rank : fit_ranks([](launch::World& world) { return comm::connect(world); })) {
    CHECK(rank.values == dp.values);
    CHECK(rank.losses == dp.losses);
  }
#if defined(LOCKSTEP_NCCL_EMULATION)
  for (auto const& rank : fit_ranks([](launch::World& world) { return comm::NcclCommunicator(world); }))
    check_alike(rank, host);
#endif
}

}  // namespace all_gather_on_cuda
