// SPDX-License-Identifier: Apache-2.0
#include <lockstep/parallel/distributed_options.hpp>

#include <doctest/doctest.h>

#include <lockstep/comm/engine/self_communicator.hpp>
#include <lockstep/parallel/policy/distributed_data_parallel.hpp>
#include <lockstep/parallel/policy/single_device.hpp>

using namespace lockstep;

TEST_CASE("the options of ddp without a communicator have the names, types and defaults of the policy's") {
  parallel::DistributedDataParallel policy{comm::SelfCommunicator{}};
  parallel::DistributedOptions options;
  static_assert(parallel::HasDistributedOptions<decltype(policy)>);
  static_assert(!parallel::HasDistributedOptions<parallel::SingleDevice>);
  auto const of_policy = parallel::describe_distributed(policy), described = parallel::describe_distributed(options);
  CHECK(of_policy.owner() == "DistributedDataParallel");
  for (auto const& option : described) {
    CAPTURE(option.name);
    CHECK(of_policy.at(option.name).variable.read() == option.variable.read());
    CHECK_FALSE(option.agreement.empty());
    CHECK(option.recorded == Recorded::if_changed);
  }
  options.gradient_wire = parallel::WireFormat::bfloat16;
  options.shard_optimizer = true;
  of_policy.assign(described);
  CHECK(policy.gradient_wire == parallel::WireFormat::bfloat16);
  CHECK(policy.shard_optimizer);
  CHECK(of_policy.at("gradient_wire").variable.text() == "bf16");
}
