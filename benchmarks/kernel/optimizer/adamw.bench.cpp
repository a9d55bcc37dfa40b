// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <string>

#include <lockstep/core/instruction_set.hpp>
#include <lockstep/memory/buffer.hpp>
#include <lockstep/optim/adamw.hpp>

#include <python_peer.hpp>
#include <suite.hpp>

using namespace lockstep;
using namespace lockstep_bench;

namespace {

/// The arenas of a model with this many parameters, in memory like a trainer's, and an optimizer step over them.
class Parameters {
 public:
  explicit Parameters(Index count) : count_(count) {
    for (auto& arena : arenas_) {
      arena = memory::Buffer<float>(count);
      std::ranges::fill(arena.span(), 0.01F);
    }
  }

  void step(ThreadPool& pool) {
    float* const states[] = {arenas_[2].data(), arenas_[3].data()};
    optim::StepScalars<HostSpace> const scalars{.step = ++t_, .learning_rate = 1e-3, .weight = 32};
    optim::AdamW{}.step(memory::Stream<HostSpace>(pool),
                        optim::Slice<float, HostSpace>{0, count_, arenas_[0].data(), arenas_[1].data(), states},
                        &scalars);
  }
  /// The machine's limit: reads the four arenas, writes three of them, and computes almost nothing.
  void traffic() {
    auto *a = arenas_[0].data(), *b = arenas_[2].data(), *c = arenas_[3].data();
    with_best_instructions([=, g = static_cast<float const*>(arenas_[1].data()), n = count_] {
      for (Index i = 0; i < n; ++i) {
        a[i] += g[i];
        b[i] += g[i];
        c[i] += g[i];
      }
    });
  }

 private:
  std::array<memory::Buffer<float>, 4> arenas_;
  Index count_;
  double t_ = 0;
};

}  // namespace

void register_benchmarks() {
  static ThreadPool pool;
  for (Index const count : {100'000, 2'842'880}) {
    auto const name = "adamw/parameters:" + std::to_string(count);
    Shared const parameters([count] { return Parameters(count); });
    add_pass(name, parameters, [](Parameters& all) { all.step(pool); });
    add_pass(name + "/peer:roof", parameters, [](Parameters& all) { all.traffic(); });
    add_peer(name, "pytorch", pytorch_kernel("adamw", {count, 1}));
    add_peer(name, "pytorch_default", pytorch_kernel("adamw", {count, 0}));
  }
}
