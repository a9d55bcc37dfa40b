// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/scaling/prediction.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling::detail {

LOCKSTEP_INLINE double expected_order(Index i, Index n) noexcept {
  auto const share = (static_cast<double>(i) - 0.375) / (static_cast<double>(n) + 0.25);
  double low = share < 0.5 ? -8 : 0, high = 8;  // quantile by bisection
  for (int step = 0; step < 50; ++step) {
    auto const middle = (low + high) / 2;
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < share ? low : high) = middle;
  }
  return low;
}

LOCKSTEP_INLINE double bytes_of(GradientPart const& part, double times) noexcept {
  if (part.table_bytes <= 0) return part.bytes;
  return part.table_bytes * (1 - std::pow(1 - std::min(1.0, part.bytes / part.table_bytes), times));
}

LOCKSTEP_INLINE double exposed(Workload const& work, double share, double times, parallel::CollectiveCost const& cost,
                               Overlap overlap) {
  auto const seconds = [&](double bytes) { return cost.latency_seconds + bytes * cost.seconds_per_byte; };
  double all = 0;
  for (auto const& part : work.gradients) all += part.table_bytes > 0 ? 0 : part.bytes;
  auto const bytes = static_cast<std::size_t>(all);
  bool const small = bytes <= parallel::CollectiveCost::min_bucket_bytes;
  auto const bucket = small ? 4 * parallel::CollectiveCost::min_bucket_bytes : cost.bucket_bytes(bytes);
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

}}}  // namespace lockstep::scaling::detail

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

LOCKSTEP_INLINE Prediction predict(Workload const& work, Index ranks, parallel::CollectiveCost const& cost,
                                   Scaling scaling, Overlap overlap) {
  auto const n = static_cast<double>(ranks), measured = static_cast<double>(work.ranks);
  auto const share = scaling == Scaling::weak ? 1 : measured / n;
  Prediction out;
  out.ranks = ranks;
  out.pass_seconds = work.pass_seconds * share;
  out.optimizer_seconds = work.optimizer_seconds;
  if (ranks > 1) {
    out.exposed_seconds = detail::exposed(work, share, share * n / measured, cost, overlap);
    out.slowest_seconds = work.spread_seconds * std::sqrt(share) * detail::expected_maximum(ranks);
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
    if (seconds > most) {
      most = seconds;
      out.bound = name;
    }
  };
  look("communication", out.exposed_seconds);
  look("slowest rank", out.slowest_seconds);
  look("optimizer", out.optimizer_seconds - perfect * alone.optimizer_seconds);
  look("data", out.data_seconds - perfect * alone.data_seconds);
  return out;
}

LOCKSTEP_INLINE Prediction predict(Workload const& work, Index ranks, Fabric const& fabric, Scaling scaling) {
  auto const ring = predict(work, ranks, fabric.ring(ranks), scaling),
             tree = predict(work, ranks, fabric.tree(ranks), scaling);
  if (fabric.all_reduce == AllReduce::ring) return ring;
  if (fabric.all_reduce == AllReduce::tree) return tree;
  return ring.step_seconds <= tree.step_seconds ? ring : tree;
}

}}}  // namespace lockstep::scaling
