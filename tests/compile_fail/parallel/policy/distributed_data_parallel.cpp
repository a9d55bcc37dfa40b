// SPDX-License-Identifier: Apache-2.0
// CASE bare: Lockstep: DistributedDataParallel needs a communicator as its first member, DistributedDataParallel
// CASE world: Lockstep: DistributedDataParallel needs a communicator as its first member, DistributedDataParallel
// CASE options: Lockstep: DistributedDataParallel needs a communicator as its first member, DistributedDataParallel
#include <lockstep/comm/engine/self_communicator.hpp>
#include <lockstep/launch/world.hpp>
#include <lockstep/parallel/policy/distributed_data_parallel.hpp>

using namespace lockstep;

int main() {
#if defined(CASE_bare)
  parallel::DistributedDataParallel const policy{};
#elif defined(CASE_world)
  parallel::DistributedDataParallel const policy{launch::World{}};
#elif defined(CASE_options)
  parallel::DistributedDataParallel const policy{2, 3};
#else
  parallel::DistributedDataParallel const policy{comm::SelfCommunicator{}};
#endif
  return policy.shards();
}
