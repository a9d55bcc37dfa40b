// SPDX-License-Identifier: Apache-2.0
// The benchmarks of collate and all_reduce as one program, which compiles in little more than the time of one.
#include <suite.hpp>

namespace lockstep_bench {
void register_collate();
void register_all_reduce();
}  // namespace lockstep_bench

#define register_benchmarks register_collate
#include "../../benchmarks/data/collate/collate.bench.cpp"
#undef register_benchmarks
#define register_benchmarks register_all_reduce
#include "../../benchmarks/comm/collectives/all_reduce.bench.cpp"
#undef register_benchmarks

void lockstep_bench::register_benchmarks() {
  register_collate();
  register_all_reduce();
}
