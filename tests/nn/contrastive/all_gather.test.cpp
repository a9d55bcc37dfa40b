// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/contrastive/all_gather.hpp>

#include <doctest/doctest.h>

#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/launch/run/run.hpp>
#include <lockstep/nn/autograd/half_precision.hpp>
#include <lockstep/parallel/policy/data_parallel.hpp>
#include <lockstep/parallel/policy/distributed_data_parallel.hpp>
#include <lockstep/parallel/policy/reproducible.hpp>
#include <lockstep/parallel/policy/single_device.hpp>

#include "parallel/meeting_model.hpp"

using namespace lockstep;
using meeting_model::farthest;
using meeting_model::fit;
using meeting_model::Kind;
using meeting_model::Model;
using meeting_model::Outcome;
using meeting_model::rounding;

namespace {
template <class Trained = Model>
Outcome fit_ranks(int ranks, Trained const& model = Trained()) {
  std::vector<Outcome> all(static_cast<std::size_t>(ranks));
  launch::run({.threads = ranks}, [&](launch::World& world) {
    all[static_cast<std::size_t>(world.rank)] =
        fit(parallel::DistributedDataParallel{comm::connect(world), 64, 1}, model);
    return 0;
  });
  for (auto const& one : all) {
    CHECK(one.values == all[0].values);
    CHECK(one.buffers == all[0].buffers);
  }
  return all[0];
}
}  // namespace

TEST_CASE("an exchange of all replicas equals one replica with all samples within rounding") {
  auto const single = fit(parallel::SingleDevice{.threads = 1});
  REQUIRE(single.losses.size() == 12);
  CHECK(single.losses.back() < 0.8 * single.losses.front());
  for (int replicas : {2, 4}) {
    CAPTURE(replicas);
    auto const dp = fit(parallel::DataParallel{.devices = replicas, .threads = 1});
    CHECK(farthest(dp.values, single.values) <= rounding);
    CHECK(farthest(dp.buffers, single.buffers) <= rounding);
    CHECK(farthest(dp.losses, single.losses) <= rounding);
    auto const ddp = fit_ranks(replicas);
    CHECK(ddp.values == dp.values);
    CHECK(ddp.buffers == dp.buffers);
    CHECK(ddp.losses == dp.losses);
  }
  // The replicas' separate results differ from that.
  auto const separate = fit(parallel::DataParallel{.devices = 2, .threads = 1}, Model(Kind::apart));
  CHECK(farthest(separate.values, single.values) > 1000 * rounding);
}

TEST_CASE("exchanges also work over sequences with different padding, in recomputed blocks and in the first layer") {
  for (auto kind : {Kind::of_sequences, Kind::recomputed, Kind::gathering}) {
    CAPTURE(static_cast<int>(kind));
    auto const single = fit(parallel::SingleDevice{.threads = 1}, Model(kind));
    CHECK(single.losses.back() < 0.9 * single.losses.front());
    for (int replicas : {2, 4}) {
      CAPTURE(replicas);
      auto const dp = fit(parallel::DataParallel{.devices = replicas, .threads = 1}, Model(kind));
      CHECK(farthest(dp.values, single.values) <= rounding);
      CHECK(farthest(dp.buffers, single.buffers) <= rounding);
      CHECK(farthest(dp.losses, single.losses) <= rounding);
      auto const ddp = fit_ranks(replicas, Model(kind));
      CHECK(ddp.values == dp.values);
      CHECK(ddp.buffers == dp.buffers);
      CHECK(ddp.losses == dp.losses);
    }
  }
}

TEST_CASE("if ranks skip a layer, the common layers are in one order") {
  auto const dp = fit(parallel::DataParallel{.devices = 2, .threads = 1}, Model(Kind::skipping));
  auto const ddp = fit_ranks(2, Model(Kind::skipping));
  CHECK(ddp.values == dp.values);
  CHECK(ddp.losses == dp.losses);
}

TEST_CASE("in 16 bits, too, dp and ddp have equal bits") {
  nn::InBfloat16 const model{Model()};
  auto const dp = fit(parallel::DataParallel{.devices = 2, .threads = 1}, model);
  CHECK(dp.losses.back() < 0.8 * dp.losses.front());
  auto const ddp = fit_ranks(2, model);
  CHECK(ddp.values == dp.values);
  CHECK(ddp.losses == dp.losses);
}

TEST_CASE("shards in turns cannot exchange, which is an error; as many devices as shards can") {
  CHECK_THROWS_WITH_AS(fit(parallel::Reproducible{parallel::SingleDevice{.threads = 1}, 2}),
                       doctest::Contains("each device computes 2 shards one after the other"), ConfigError);
  auto const plain = fit(parallel::DataParallel{.devices = 2, .threads = 1});
  CHECK(fit(parallel::Reproducible{parallel::DataParallel{.devices = 2, .threads = 1}, 2}).values == plain.values);
}
