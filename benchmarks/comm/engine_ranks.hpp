// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include <lockstep/comm/collectives/all_reduce.hpp>
#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/comm/shared_memory/detail/group_memory.hpp>
#include <lockstep/core/clock.hpp>
#include <lockstep/launch/run/run.hpp>

#include <probe.hpp>

namespace lockstep_bench {

/// One rank of an engine that all-reduces `bytes` of float32 on request, or does equal work on the same memory without
/// waiting (the roof).
class EngineRank {
 public:
  EngineRank(lockstep::launch::World const& world, std::size_t bytes)
      : here_(processor_numbers()[static_cast<std::size_t>(world.rank) % processor_numbers().size()]),
        communicator_(lockstep::comm::connect(world)),
        block_(communicator_.allocate(bytes)),
        mine_(reinterpret_cast<float*>(block_.data()), bytes / sizeof(float)) {
    lockstep::comm::detail::GroupMemory const memory(world.segment, world.size);
    auto const offset = memory.offset(block_.data());
    std::vector<lockstep::Index> offsets(static_cast<std::size_t>(world.size));
    communicator_.all_gather(&offset, offsets.data(), sizeof offset);
    for (auto const at : offsets) all_.push_back(reinterpret_cast<float*>(memory.at(at)));
  }

  /// Rank 0 reads requests; the others follow it. A request is a number of seconds, negative for the roof. The answer
  /// is one over the median time of the slowest rank.
  int run_commands() {
    double turn = 0;
    if (rank() == 0) {
      std::puts("ready");
      std::fflush(stdout);
    }
    for (;;) {
      if (rank() == 0 && std::scanf("%lf", &turn) != 1) turn = 0;
      communicator_.broadcast(&turn, sizeof turn, 0);
      if (turn == 0) return 0;
      auto& estimate = turn > 0 ? sum_estimate_ : roof_estimate_;
      auto const times = static_cast<long>(std::clamp(std::abs(turn) / estimate, 5.0, 20000.0));
      auto const begin = lockstep::Clock::seconds();
      auto const median = measure(times, turn > 0);
      double spent = (lockstep::Clock::seconds() - begin) / static_cast<double>(times);
      communicator_.broadcast(&spent, sizeof spent, 0);
      estimate = spent;
      if (rank() != 0) continue;
      std::printf("%.9g\n", 1 / median);
      std::fflush(stdout);
    }
  }

 private:
  [[nodiscard]] int rank() const { return communicator_.rank(); }

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
#pragma GCC ivdep
        for (auto i = begin; i < end; ++i) a[i] = b[i] = a[i] + b[i];
      });
    else if (all_.size() == 4)
      lockstep::with_best_instructions([a = all_[0], b = all_[1], c = all_[2], d = all_[3], begin, end] {
#pragma GCC ivdep
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
  lockstep::comm::AnyCommunicator communicator_;
  lockstep::memory::Block block_;
  std::span<float> mine_;
  std::vector<float*> all_;
  std::vector<double> times_;
  double sum_estimate_ = 1e-2, roof_estimate_ = 1e-2;
};

/// The ranks of an engine ("thread" or "process"), their number, and the bytes of each.
inline int run_engine(std::string const& engine, int ranks, std::size_t bytes) {
  lockstep::launch::Options options;
  (engine == "thread" ? options.threads : options.nproc) = ranks;
  options.limits = {.warn_seconds = 3600, .stall_seconds = 3600};
  options.report = [](std::string const& what) { std::fprintf(stderr, "%s\n", what.c_str()); };
  return lockstep::launch::run(options,
                               [&](lockstep::launch::World& world) { return EngineRank(world, bytes).run_commands(); });
}

}  // namespace lockstep_bench
