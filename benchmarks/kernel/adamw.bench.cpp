// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <lockstep/optim/adamw.hpp>

#include <python_peer.hpp>
#include <rate.hpp>
#include <ratios.hpp>

using namespace lockstep;
using namespace lockstep_bench;

namespace {

/// The arenas of a model with so many parameters, and a step over them.
class Parameters {
 public:
  explicit Parameters(Index count) : arena_(static_cast<std::size_t>(4 * count), 0.01F), count_(count) {}

  void step(ThreadPool& pool) {
    float* const states[] = {arena_.data() + 2 * count_, arena_.data() + 3 * count_};
    optim::StepScalars<HostSpace> const scalars{.step = ++t_, .learning_rate = 1e-3, .weight = 32};
    optim::AdamW{}.step(memory::Stream<HostSpace>(pool),
                        optim::Slice<float, HostSpace>{0, count_, arena_.data(), arena_.data() + count_, states},
                        &scalars);
  }

 private:
  std::vector<float> arena_;
  Index count_;
  double t_ = 0;
};

/// The machine's own limit: reading four arrays and writing three, and nothing else.
class Traffic {
 public:
  explicit Traffic(Index count)
      : words_(static_cast<std::size_t>(4 * count) / 2, 1), count_(static_cast<std::size_t>(count) / 2) {}

  void pass() {
    auto *a = words_.data(), *b = a + count_, *c = b + count_, *d = c + count_;
    with_best_instructions([=, n = count_] {
      for (std::size_t i = 0; i < n; ++i) {
        auto const g = d[i];
        a[i] += g;
        b[i] += g;
        c[i] += g;
      }
    });
  }

 private:
  std::vector<std::uint64_t> words_;
  std::size_t count_;
};

}  // namespace

int main() {
  Ratios ratios("kernel/adamw");
  ThreadPool pool;
  for (Index const count : {100'000, 2'842'880}) {
    auto const name = "adamw, float32, " + std::to_string(count) + " parameters, 1 thread";
    Parameters parameters(count);
    auto const ours = [&](double duration) { return rate(duration, Time::processor, [&] { parameters.step(pool); }); };
    for (auto const& [peer, fused] : {std::pair{"pytorch", "1"}, std::pair{"pytorch_default", "0"}})
      if (auto other = python_peer("kernels.py", {"adamw", std::to_string(count), fused}))
        ratios.compare(name, peer, ours, std::ref(*other));
    Traffic traffic(count);
    ratios.compare(name, "roof", ours,
                   [&](double duration) { return rate(duration, Time::processor, [&] { traffic.pass(); }); });
  }
}
