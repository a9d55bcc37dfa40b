// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <lockstep/comm/collectives/all_reduce.hpp>
#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/comm/shared_memory/detail/group_memory.hpp>
#include <lockstep/core/clock.hpp>
#include <lockstep/launch/run/run.hpp>

#include <probe.hpp>

// Placed before a loop whose arrays do not overlap.
#if defined(__clang__)
#define LOCKSTEP_INDEPENDENT_ITERATIONS _Pragma("clang loop vectorize(assume_safety)")
#else
#define LOCKSTEP_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#endif

namespace lockstep_bench {

/// One rank of an engine that all-reduces float32 on request, or does equal work on the same memory without waiting
/// (the roof).
class EngineRank {
 public:
  explicit EngineRank(lockstep::launch::World const& world)
      : here_(processor_numbers()[static_cast<std::size_t>(world.rank) % processor_numbers().size()]),
        world_(world),
        communicator_(lockstep::comm::connect(world)) {}

  /// Rank 0 reads requests `COUNT BYTES sum|roof`; the others follow it. The answer is COUNT times the median time of
  /// the slowest rank, measured over at most 2,000 iterations.
  int run_commands() {
    if (rank() == 0) {
      std::puts("ready");
      std::fflush(stdout);
    }
    for (;;) {
      struct {
        double count = 0, bytes = 0, sum = 0;
      } plan;
      if (char work[8]; rank() == 0 && std::scanf("%lf %lf %7s", &plan.count, &plan.bytes, work) == 3)
        plan.sum = std::string_view(work) == "sum";
      else
        plan.count = 0;
      communicator_.broadcast(&plan, sizeof plan, 0);
      if (plan.count == 0) return 0;
      use(static_cast<std::size_t>(plan.bytes));
      auto const median = measure(static_cast<long>(std::min(plan.count, 2000.0)), plan.sum != 0);
      if (rank() != 0) continue;
      std::printf("%.9g\n", plan.count * median);
      std::fflush(stdout);
    }
  }

 private:
  [[nodiscard]] int rank() const { return communicator_.rank(); }

  /// Replaces the memory by one of this size.
  void use(std::size_t bytes) {
    if (mine_.size_bytes() == bytes) return;
    block_ = {};
    block_ = communicator_.allocate(bytes);
    mine_ = {reinterpret_cast<float*>(block_.data()), bytes / sizeof(float)};
    lockstep::comm::detail::GroupMemory const memory(world_.segment, world_.size);
    auto const offset = memory.offset(block_.data());
    std::vector<lockstep::Index> offsets(static_cast<std::size_t>(world_.size));
    communicator_.all_gather(&offset, offsets.data(), sizeof offset);
    all_.clear();
    for (auto const at : offsets) all_.push_back(reinterpret_cast<float*>(memory.at(at)));
  }

  double measure(long times, bool sum) {
    times_.clear();
    for (long i = 0; i < times; ++i) {
      // Memory that is in every rank's cache, or that no rank has written, would give another result.
      std::fill(mine_.begin(), mine_.end(), static_cast<float>(i % 8 + rank()));
      communicator_.barrier();
      auto const begin = lockstep::Clock::nanoseconds();
      if (sum)
        lockstep::comm::all_reduce(communicator_, mine_).wait();
      else
        work_without_waiting();
      times_.push_back(static_cast<double>(lockstep::Clock::nanoseconds() - begin) - clock_ns_);
      communicator_.barrier();
    }
    auto const middle = times_.begin() + static_cast<std::ptrdiff_t>(times_.size() / 2);
    std::nth_element(times_.begin(), middle, times_.end());
    double longest = *middle * 1e-9;
    lockstep::comm::all_reduce(communicator_, std::span(&longest, 1), lockstep::comm::Reduction::max).wait();
    return longest;
  }

  void work_without_waiting() {
    auto const lines = (std::ssize(mine_) + 15) / 16;
    auto const begin = std::min(std::ssize(mine_), lines * rank() / communicator_.size() * 16),
               end = std::min(std::ssize(mine_), lines * (rank() + 1) / communicator_.size() * 16);
    if (all_.size() == 2)
      lockstep::with_best_instructions([a = all_[0], b = all_[1], begin, end] {
        LOCKSTEP_INDEPENDENT_ITERATIONS
        for (auto i = begin; i < end; ++i) a[i] = b[i] = a[i] + b[i];
      });
    else if (all_.size() == 4)
      lockstep::with_best_instructions([a = all_[0], b = all_[1], c = all_[2], d = all_[3], begin, end] {
        LOCKSTEP_INDEPENDENT_ITERATIONS
        for (auto i = begin; i < end; ++i) a[i] = b[i] = c[i] = d[i] = (a[i] + b[i]) + (c[i] + d[i]);
      });
  }

  /// Cost of reading the clock.
  static double clock_cost() {
    std::vector<double> gaps;
    for (int i = 0; i < 1001; ++i) {
      auto const begin = lockstep::Clock::nanoseconds();
      gaps.push_back(static_cast<double>(lockstep::Clock::nanoseconds() - begin));
    }
    std::nth_element(gaps.begin(), gaps.begin() + 500, gaps.end());
    return gaps[500];
  }

  Pinned here_;
  double clock_ns_ = clock_cost();
  lockstep::launch::World const& world_;
  lockstep::comm::AnyCommunicator communicator_;
  lockstep::memory::Block block_;
  std::span<float> mine_;
  std::vector<float*> all_;
  std::vector<double> times_;
};

/// The ranks of an engine ("thread" or "process"), and their number.
inline int run_engine(std::string const& engine, int ranks) {
  lockstep::launch::Options options;
  (engine == "thread" ? options.threads : options.nproc) = ranks;
  options.limits = {.warn_seconds = 3600, .stall_seconds = 3600};
  options.report = [](std::string const& what) { std::fprintf(stderr, "%s\n", what.c_str()); };
  return lockstep::launch::run(options,
                               [&](lockstep::launch::World& world) { return EngineRank(world).run_commands(); });
}

}  // namespace lockstep_bench
