// SPDX-License-Identifier: Apache-2.0
#include <lockstep/parallel/buffer_policy.hpp>

#include <doctest/doctest.h>

#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/launch/run/run.hpp>
#include <lockstep/parallel/policy/data_parallel.hpp>
#include <lockstep/parallel/policy/distributed_data_parallel.hpp>

#include "session_cases.hpp"

using namespace lockstep;
using parallel::BufferPolicy;

namespace {
/// Returns the buffer of every replica after replica k has set its own to 2^k / 3, and all were shared.
template <class Policy>
std::vector<float> shared(Policy policy) {
  session_cases::Counting model;
  auto const layout = nn::ParameterLayout::of(model);
  std::vector<float> const start(static_cast<std::size_t>(layout.size()));
  typename Policy::template Session<session_cases::Counting, optim::SGD> session(policy, model, layout, start);
  std::vector<float> seen(static_cast<std::size_t>(policy.shards()));
  session.for_each_shard(
      [&](int device, auto& replica) { replica.buffers()[0] = std::ldexp(1.0f, policy.first_shard() + device) / 3; });
  session.synchronize_buffers();
  session.for_each_shard(
      [&](int device, auto& replica) { seen[static_cast<std::size_t>(device)] = replica.buffers()[0]; });
  return seen;
}
std::vector<float> over_devices(int shards, BufferPolicy buffers) {
  return shared(parallel::DataParallel{.devices = shards, .threads = 1, .buffers = buffers});
}
std::vector<float> over_ranks(int shards, BufferPolicy buffers) {
  std::vector<float> seen(static_cast<std::size_t>(shards));
  launch::Options options;
  options.threads = shards;
  launch::run(options, [&](launch::World& world) {
    seen[static_cast<std::size_t>(world.rank)] =
        shared(parallel::DistributedDataParallel<comm::AnyCommunicator>{comm::connect(world), 64, 1, buffers})[0];
    return 0;
  });
  return seen;
}
}  // namespace

TEST_CASE("buffers become the first replica's, the mean over replicas, or stay, equally over devices and ranks") {
  for (int shards : {1, 2, 3, 5}) {
    std::vector<float> own;
    for (int k = 0; k < shards; ++k) own.push_back(std::ldexp(1.0f, k) / 3);
    auto const all = [&](float value) { return std::vector<float>(own.size(), value); };
    auto const mean = tree_sum(shards, [&](int k) { return own[static_cast<std::size_t>(k)]; }) / float(shards);
    for (auto const& over : {over_devices, over_ranks}) {
      CHECK(over(shards, BufferPolicy::first) == all(own[0]));
      CHECK(over(shards, BufferPolicy::mean) == all(mean));
      CHECK(over(shards, BufferPolicy::own) == own);
    }
  }
}
