// SPDX-License-Identifier: Apache-2.0
// CASE nccl: Lockstep: NCCL chooses the order of additions
#include <lockstep/parallel/policy/reproducible.hpp>

using namespace lockstep;

struct Communicator {
#if defined(CASE_nccl)
  using Space = CudaSpace;
#endif
};
struct Policy {
  Communicator communicator;
  static int shards() { return 1; }
  static int first_shard() { return 0; }
  static int all_shards() { return 2; }
};

int main() { return parallel::Reproducible{Policy{}, 4}.shards(); }
