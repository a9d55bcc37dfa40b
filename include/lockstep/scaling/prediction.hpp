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
  double bytes = 0;
  double ready_seconds = 0;  ///< since the beginning of the step's first forward
  double table_bytes = 0;    ///< for touched rows of a table, bytes of the whole table; else 0
};

/// Measured work of one rank in an optimizer step, without waits. The input of a prediction.
struct Workload {
  Index ranks = 1;          ///< ranks of the measured run, all of which touched rows of tables
  double samples = 1;       ///< samples of one rank
  double pass_seconds = 0;  ///< forward and backward of all micro-batches
  double optimizer_seconds = 0;
  double other_seconds = 0;   ///< time outside all phases
  double load_seconds = 0;    ///< load time of these samples, overlapped with the work; 0: less than a step
  double spread_seconds = 0;  ///< standard deviation of a step's time between steps
  double gradient_bytes = 4;  ///< bytes of an element as sent
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
  Index ranks = 1;
  double step_seconds = 0;  ///< sum of the following, and of the workload's time outside all phases
  double pass_seconds = 0;
  double exposed_seconds = 0;  ///< communication that backward does not hide
  double slowest_seconds = 0;  ///< wait for the slowest rank
  double optimizer_seconds = 0;
  double data_seconds = 0;        ///< wait for the loader
  double samples_per_second = 0;  ///< samples per second of all ranks
  double efficiency = 1;          ///< samples_per_second / (ranks * samples_per_second of one rank)

  /// "compute", "communication", "slowest rank", "optimizer" or "data": the largest part of the step. For an efficiency
  /// below 0.9, the largest loss.
  char const* bound = "compute";
};

namespace detail {

/// Returns the expected maximum of n normally distributed step times, in standard deviations above the mean; n is at
/// least 2. @source Blom's approximation of normal order statistics
[[nodiscard]] inline double expected_most(Index n) noexcept {
  auto const share = (static_cast<double>(n) - 0.375) / (static_cast<double>(n) + 0.25);
  double low = 0, high = 8;  // quantile by bisection
  for (int i = 0; i < 50; ++i) {
    auto const middle = (low + high) / 2;
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < share ? low : high) = middle;
  }
  return low;
}

/// Returns the bytes of a part that `times` as many samples touch: all rows except those that every sample misses. An
/// upper estimate if some rows are more frequent than others.
[[nodiscard]] inline double bytes_of(GradientPart const& part, double times) noexcept {
  if (part.table_bytes <= 0) return part.bytes;
  return part.table_bytes * (1 - std::pow(1 - std::min(1.0, part.bytes / part.table_bytes), times));
}

/// Simulates buckets, split as by GradientBuckets. Each is sent in order, once its last gradient is ready and the
/// previous sum is complete. Rows of tables follow.
/// @returns seconds of sums that are not hidden behind a pass of `share` times the workload's length
[[nodiscard]] inline double exposed(Workload const& work, double share, double times,
                                    parallel::CollectiveCost const& cost, Overlap overlap) {
  auto const seconds = [&](double bytes) { return cost.start_seconds + bytes * cost.byte_seconds; };
  double all = 0;
  for (auto const& part : work.gradients) all += part.table_bytes > 0 ? 0 : part.bytes;
  auto const bytes = static_cast<std::size_t>(all);
  bool const small = bytes <= parallel::CollectiveCost::least_bucket;
  auto const bucket = small ? 4 * parallel::CollectiveCost::least_bucket : cost.bucket_bytes(bytes);
  auto const each = work.gradient_bytes;
  auto const full = static_cast<Index>(static_cast<double>(bucket) / each), size = static_cast<Index>(all / each);
  double end = 0, busy = 0, covered = 0, ready = size == 0 ? work.pass_seconds * share : 0;
  auto part = work.gradients.begin();
  for (Index begin = 0; begin < size || busy == 0;) {
    auto const next = std::min(size, begin + parallel::GradientBuckets::next_length(full, size - begin, begin == 0));
    for (; part != work.gradients.end() && covered < static_cast<double>(next) * each; ++part) {
      if (part->table_bytes > 0) continue;
      covered += part->bytes;
      ready = std::max(ready, part->ready_seconds * share);
    }
    auto const takes = seconds(static_cast<double>(next - begin) * each);
    end = std::max(end, ready) + takes;
    busy += takes;
    if (next == begin) break;
    begin = next;
  }
  auto exposed = overlap == Overlap::none ? busy : std::max(0.0, end - work.pass_seconds * share);
  for (auto const& table : work.gradients)
    if (table.table_bytes > 0) exposed += seconds(bytes_of(table, times));
  return exposed;
}

}  // namespace detail

/// Predicts the step of `ranks` ranks whose all-reduces take `cost`. Simulates each bucket's sum.
[[nodiscard]] inline Prediction predict(Workload const& work, Index ranks, parallel::CollectiveCost const& cost,
                                        Scaling scaling = Scaling::weak, Overlap overlap = Overlap::full) {
  auto const n = static_cast<double>(ranks), measured = static_cast<double>(work.ranks);
  auto const share = scaling == Scaling::weak ? 1 : measured / n;
  Prediction out;
  out.ranks = ranks;
  out.pass_seconds = work.pass_seconds * share;
  out.optimizer_seconds = work.optimizer_seconds;
  if (ranks > 1) {
    out.exposed_seconds = detail::exposed(work, share, share * n / measured, cost, overlap);
    out.slowest_seconds = work.spread_seconds * std::sqrt(share) * detail::expected_most(ranks);
  }
  auto const busy =
      out.pass_seconds + out.exposed_seconds + out.slowest_seconds + work.optimizer_seconds + work.other_seconds;
  out.data_seconds = std::max(0.0, work.load_seconds * share - busy);
  out.step_seconds = busy + out.data_seconds;
  out.samples_per_second = out.step_seconds > 0 ? work.samples * share * n / out.step_seconds : 0;
  Prediction alone;
  if (ranks > 1) {
    alone = predict(work, 1, cost, scaling, overlap);
    out.efficiency = alone.samples_per_second > 0 ? out.samples_per_second / (n * alone.samples_per_second) : 0;
  }
  // Perfect scaling has this fraction of a single rank's step.
  auto const perfect = out.efficiency < 0.9 ? (scaling == Scaling::weak ? 1 : 1 / n) : 0;
  auto most = out.pass_seconds - perfect * alone.pass_seconds;
  auto const look = [&](char const* name, double seconds) {
    if (seconds > most) most = seconds, out.bound = name;
  };
  look("communication", out.exposed_seconds);
  look("slowest rank", out.slowest_seconds);
  look("optimizer", out.optimizer_seconds - perfect * alone.optimizer_seconds);
  look("data", out.data_seconds - perfect * alone.data_seconds);
  return out;
}

/// Predicts a step over a fabric.
[[nodiscard]] inline Prediction predict(Workload const& work, Index ranks, Fabric const& fabric,
                                        Scaling scaling = Scaling::weak) {
  auto const ring = predict(work, ranks, fabric.ring(ranks), scaling),
             tree = predict(work, ranks, fabric.tree(ranks), scaling);
  if (fabric.all_reduce == AllReduce::ring) return ring;
  if (fabric.all_reduce == AllReduce::tree) return tree;
  return ring.step_seconds <= tree.step_seconds ? ring : tree;
}

}}}  // namespace lockstep::scaling
