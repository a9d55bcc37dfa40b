// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/parallel/collective_cost.hpp>
#include <lockstep/parallel/gradient_buckets.hpp>
#include <lockstep/scaling/fabric.hpp>

namespace lockstep::inline LOCKSTEP_ABI::scaling {

/// Gradients that leave for their sum together.
struct GradientPart {
  double bytes = 0;
  double ready_seconds = 0;  ///< since the step's first forward began
  double table_bytes = 0;    ///< of the whole table, where `bytes` are the rows of one that a step touched; else 0
};

/// What one rank does in an optimizer step when it waits for nobody: what a prediction is made from.
struct Workload {
  Index ranks = 1;          ///< of the run in which it was measured: so many touched the rows of tables
  double samples = 1;       ///< of one rank
  double pass_seconds = 0;  ///< forward and backward of all its micro-batches
  double optimizer_seconds = 0;
  double other_seconds = 0;   ///< what is in no phase
  double load_seconds = 0;    ///< that its loader takes for those samples, beside the work; 0: less than a step
  double spread_seconds = 0;  ///< standard deviation of a step's time, from one step to the next
  double gradient_bytes = 4;  ///< of an element, as ranks send it
  std::vector<GradientPart> gradients = {};  ///< in the order in which they leave
};

/// What stays as it is when ranks are added.
enum class Scaling {
  weak,    ///< the samples of each rank in a step
  strong,  ///< the samples of all ranks together: each has fewer
};

/// Who does the work of a sum.
enum class Overlap {
  full,  ///< a network or a GPU's copy engines, while backward goes on
  none,  ///< the processors that compute, as with ranks of one host: only waiting is hidden
};

/// A step of one of `ranks` ranks, as it would be: nobody has measured it.
struct Prediction {
  Index ranks = 1;
  double step_seconds = 0;  ///< the sum of the following, and what the workload has in no phase
  double pass_seconds = 0;
  double exposed_seconds = 0;  ///< communication that backward does not hide
  double slowest_seconds = 0;  ///< waiting for the rank that has most to do
  double optimizer_seconds = 0;
  double data_seconds = 0;        ///< waiting for the loader
  double samples_per_second = 0;  ///< of all ranks
  double efficiency = 1;          ///< samples_per_second over `ranks` times that of one

  /// "compute", "communication", "slowest rank", "optimizer" or "data": what takes most of the step or, where the
  /// efficiency is below 0.9, what most of that is lost to.
  char const* bound = "compute";
};

namespace detail {

/// How much longer than an average one the longest of n steps takes, in standard deviations, were they distributed
/// normally; n is at least 2. @source Blom's approximation of normal order statistics
[[nodiscard]] inline double expected_most(Index n) noexcept {
  auto const share = (static_cast<double>(n) - 0.375) / (static_cast<double>(n) + 0.25);
  double low = 0, high = 8;  // the quantile of that share, by bisection
  for (int i = 0; i < 50; ++i) {
    auto const middle = (low + high) / 2;
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < share ? low : high) = middle;
  }
  return low;
}

/// Bytes of a part that `times` as many samples touch: all but the rows that every one of them misses. Rows that are
/// met more often than others make it less.
[[nodiscard]] inline double bytes_of(GradientPart const& part, double times) noexcept {
  if (part.table_bytes <= 0) return part.bytes;
  return part.table_bytes * (1 - std::pow(1 - std::min(1.0, part.bytes / part.table_bytes), times));
}

/// Buckets, cut as GradientBuckets does, leave in order, each when its last gradient is ready and the one before has
/// come back; then the rows of tables.
/// @returns seconds of the sums that are not hidden behind a pass `share` times as long as the workload's
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

/// The step of `ranks` ranks whose all-reduces take `cost`, each bucket's sum simulated in its turn.
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
  // Of perfect scaling, a step of so many times the samples.
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

/// The same over a fabric.
[[nodiscard]] inline Prediction predict(Workload const& work, Index ranks, Fabric const& fabric,
                                        Scaling scaling = Scaling::weak) {
  auto const ring = predict(work, ranks, fabric.ring(ranks), scaling),
             tree = predict(work, ranks, fabric.tree(ranks), scaling);
  if (fabric.all_reduce == AllReduce::ring) return ring;
  if (fabric.all_reduce == AllReduce::tree) return tree;
  return ring.step_seconds <= tree.step_seconds ? ring : tree;
}

}  // namespace lockstep::inline LOCKSTEP_ABI::scaling
