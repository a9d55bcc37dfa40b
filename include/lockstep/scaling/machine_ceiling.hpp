// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <lockstep/core/atomic_file.hpp>
#include <lockstep/core/clock.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/file_descriptor.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/json.hpp>
#include <lockstep/core/json_writer.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/core/processors.hpp>
#include <lockstep/core/start_thread.hpp>
#include <lockstep/core/thread_pool.hpp>
#include <lockstep/kernel/gemm/gemm.hpp>
#include <lockstep/parallel/gradients/collective_cost.hpp>
#include <lockstep/scaling/prediction.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

/// How much slower the processors of a machine become when several work at once. They share caches, memory and clock.
/// Ranks on one machine cannot scale better than work without communication does.
struct MachineCeiling {
  /// Processor time for equal work of one thread, with `threads` of them over alone; 1: nothing is shared.
  struct Point {
    Index threads = 1;      ///< that work at the same time
    double arithmetic = 1;  ///< matrix products of a size that fits a core's cache
    double memory = 1;      ///< updates of arrays of 8 MiB, more than a core's own cache
  };

  Index cores = 1;            ///< processors of the machine
  bool busy = false;          ///< measured while other programs used the processors: they hide some of the sharing
  std::vector<Point> points;  ///< for 1, 2, 4 … cores threads

  /// Measures 1, 2, 4 … cores threads in turns, about `seconds` in all. Counts processor time.
  /// @throws ConfigError if the system has too few threads
  [[nodiscard]] static MachineCeiling measure(double seconds = 3);

  /// Returns the ceiling that an earlier call stored in `folder`, or measures and stores it. Files and folders that
  /// another user owns or may write are not used, nor are files that were measured on a busy machine. A folder that
  /// cannot be written to is no error.
  [[nodiscard]] static MachineCeiling cached(std::filesystem::path const& folder, double seconds = 3);
  /// Returns the name of this machine's file, which depends on its processors.
  [[nodiscard]] static std::string file_name();

  /// Reads a stored ceiling; empty if it cannot be trusted or read.
  [[nodiscard]] static std::optional<MachineCeiling> read(std::filesystem::path const& file);
  /// Returns the content of a stored ceiling.
  [[nodiscard]] std::string json() const;

  /// Returns the factor by which a pass takes longer on `ranks` ranks of one thread than on one. More ranks than cores
  /// take turns: they do the work of their ranks without a pause.
  [[nodiscard]] double pass_factor(Index ranks) const { return factor(ranks, &Point::arithmetic); }
  /// Returns the factor for an update of so many bytes of parameters.
  [[nodiscard]] double update_factor(Index ranks, double bytes) const {
    return factor(ranks, bytes > cached_bytes ? &Point::memory : &Point::arithmetic);
  }

 private:
  static constexpr double cached_bytes = 64 << 10;  // of parameters, whose AdamW state fits a core's cache

  [[nodiscard]] double factor(Index ranks, double Point::*kind) const;
};

/// Predicts a step of ranks on one machine, of one thread each. `cost` is of an all-reduce of these ranks. Sums take
/// the processors that compute.
[[nodiscard]] Prediction predict(Workload const& work, Index ranks, parallel::CollectiveCost const& cost,
                                 MachineCeiling const& ceiling, Scaling scaling = Scaling::weak);

}}}  // namespace lockstep::scaling

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/scaling/machine_ceiling.ipp>
#endif
