// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/parallel/gradients/collective_cost.hpp>
#include <lockstep/parallel/gradients/gradient_buckets.hpp>
#include <lockstep/scaling/fabric.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

/// Gradients that are sent in one sum.
struct GradientPart {
  double bytes = 0;          ///< as sent
  double ready_seconds = 0;  ///< since the beginning of the step's first forward
  double table_bytes = 0;    ///< for touched rows of a table, bytes of the whole table; else 0
};

/// Measured work of one rank in an optimizer step, without waits. The input of a prediction.
struct Workload {
  Index ranks = 1;               ///< ranks of the measured run, all of which touched rows of tables
  double samples = 1;            ///< samples of one rank
  double pass_seconds = 0;       ///< forward and backward of all micro-batches
  double optimizer_seconds = 0;  ///< update of all parameters
  double other_seconds = 0;      ///< time outside all phases
  double load_seconds = 0;       ///< load time of these samples, overlapped with the work; 0: less than a step
  double spread_seconds = 0;     ///< standard deviation of a step's time between steps
  double gradient_bytes = 4;     ///< bytes of an element as sent
  std::vector<GradientPart> gradients = {};  ///< in the order in which they are sent
};

/// Quantity that stays constant when ranks are added.
enum class Scaling {
  weak,    ///< samples per rank and step
  strong,  ///< samples per step over all ranks: each rank has fewer
};

/// Resources that execute a sum.
enum class Overlap {
  full,  ///< a network or a GPU's copy engines, in parallel with backward
  none,  ///< the processors that compute, for example ranks on one host: only waiting is hidden
};

/// Predicted step of one of `ranks` ranks.
struct Prediction {
  Index ranks = 1;                ///< of the prediction
  double step_seconds = 0;        ///< sum of the following, and of the workload's time outside all phases
  double pass_seconds = 0;        ///< forward and backward
  double exposed_seconds = 0;     ///< communication that backward does not hide
  double slowest_seconds = 0;     ///< wait for the slowest rank
  double optimizer_seconds = 0;   ///< update of the parameters
  double data_seconds = 0;        ///< wait for the loader
  double samples_per_second = 0;  ///< samples per second of all ranks
  double efficiency = 1;          ///< samples_per_second / (ranks * samples_per_second of one rank)

  /// "compute", "communication", "slowest rank", "optimizer" or "data": the largest part of the step. For an efficiency
  /// below 0.9, the largest loss.
  char const* bound = "compute";
};

namespace detail {

/// Returns the expected i-th smallest of n normally distributed step times, in standard deviations above the mean.
/// @param i from 1   @source Blom's approximation of normal order statistics
[[nodiscard]] double expected_order(Index i, Index n) noexcept;

/// Returns the expected maximum of n of them; n is at least 2.
[[nodiscard]] inline double expected_maximum(Index n) noexcept { return expected_order(n, n); }

/// Returns the bytes of a part that `times` as many samples touch: all rows except those that every sample misses. An
/// upper estimate if some rows are more frequent than others.
[[nodiscard]] double bytes_of(GradientPart const& part, double times) noexcept;

/// Simulates buckets, split as by GradientBuckets. Each is sent in order, once its last gradient is ready and the
/// previous sum is complete. Rows of tables follow.
/// @returns seconds of sums that are not hidden behind a pass of `share` times the workload's length
[[nodiscard]] double exposed(Workload const& work, double share, double times, parallel::CollectiveCost const& cost,
                             Overlap overlap);

}  // namespace detail

/// Predicts the step of `ranks` ranks whose all-reduces take `cost`. Simulates each bucket's sum.
[[nodiscard]] Prediction predict(Workload const& work, Index ranks, parallel::CollectiveCost const& cost,
                                 Scaling scaling = Scaling::weak, Overlap overlap = Overlap::full);

/// Predicts a step over a fabric.
[[nodiscard]] Prediction predict(Workload const& work, Index ranks, Fabric const& fabric,
                                 Scaling scaling = Scaling::weak);

}}}  // namespace lockstep::scaling

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/scaling/prediction.ipp>
#endif
