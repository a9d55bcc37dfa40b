// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/scaling/scaling_report.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

LOCKSTEP_INLINE ScalingReport::ScalingReport(Workload work, Fabric const& fabric, std::vector<Index> const& ranks)
    : work_(std::move(work)), fabric_(fabric) {
  auto const samples = work_.samples * static_cast<double>(work_.ranks);
  for (auto const n : ranks) {
    weak_.push_back(predict(work_, n, fabric_, Scaling::weak));
    if (static_cast<double>(n) <= samples) strong_.push_back(predict(work_, n, fabric_, Scaling::strong));
  }
}

LOCKSTEP_INLINE std::vector<Index> ScalingReport::powers_of_two() {
  std::vector<Index> out;
  for (Index n = 2; n <= 1024; n *= 2) out.push_back(n);
  return out;
}

LOCKSTEP_INLINE Index ScalingReport::efficient_until(std::vector<Prediction> const& sizes, double alone) {
  Index ranks = 1;
  for (auto const& size : sizes) {
    auto const doublings = std::log2(static_cast<double>(size.ranks) / static_cast<double>(ranks));
    if (size.samples_per_second < alone * std::pow(efficient_factor, doublings)) break;
    ranks = size.ranks;
    alone = size.samples_per_second;
  }
  return ranks;
}

LOCKSTEP_INLINE Index ScalingReport::useful_until(std::vector<Prediction> const& sizes, double alone) {
  Index ranks = 1;
  for (auto const& size : sizes) {
    if (size.samples_per_second < useful_factor * alone) continue;
    ranks = size.ranks;
    alone = size.samples_per_second;
  }
  return ranks;
}

LOCKSTEP_INLINE std::vector<detail::Remedy> ScalingReport::remedies() const {
  std::vector<detail::Remedy> out;
  if (weak_.empty()) return out;
  auto const before = limiting_size().samples_per_second;
  auto const add_if_faster = [&](Workload const& work, Fabric const& fabric, std::string description) {
    auto const after = predict(work, limiting_size().ranks, fabric, Scaling::weak).samples_per_second;
    if (before > 0 && after >= 1.02 * before) out.push_back({after / before - 1, std::move(description)});
  };
  auto work = work_;
  work.samples *= 2;
  work.pass_seconds *= 2;
  work.load_seconds *= 2;
  work.spread_seconds *= std::sqrt(2.0);
  for (auto& part : work.gradients) {
    part.ready_seconds *= 2;
    part.bytes = detail::bytes_of(part, 2);
  }
  add_if_faster(work, fabric_,
                "twice the --batch-size, " + detail::rounded(work.samples, 0) + " samples of each rank in a step");
  work = work_;
  work.spread_seconds = 0;
  add_if_faster(work, fabric_,
                "steps of equal duration: batches of similar length, and no other programs on the hosts");
  work = work_;
  work.load_seconds /= 2;
  add_if_faster(work, fabric_, "a loader twice as fast: more --num-workers, or samples that are cheaper to read");
  auto fabric = fabric_;
  fabric.seconds_per_byte /= 2;
  add_if_faster(work_, fabric, "twice the bandwidth between ranks");
  fabric = fabric_;
  fabric.latency_seconds /= 2;
  add_if_faster(work_, fabric, "half the time for a message to start");
  detail::sort(out);
  return out;
}

LOCKSTEP_INLINE std::string ScalingReport::text() const {
  std::string out = "predicted, none of it measured: ranks that send each other messages of " +
                    detail::rounded(fabric_.latency_seconds * 1e6, 1) + " us and " +
                    detail::rounded(1e-9 / fabric_.seconds_per_byte, 3) +
                    " GB/s (report takes --alpha-us, --beta-gb-s), each with processors and a loader of its own\n";
  if (*fabric_.source != '\0') out += std::string(fabric_.source) + "\n";
  out += table("the same batch for each rank: " + detail::rounded(work_.samples, 0) + " samples a step", weak_,
               Scaling::weak);
  out +=
      table("the same batch for all together: " + detail::rounded(work_.samples * static_cast<double>(work_.ranks), 0) +
                " samples a step",
            strong_, Scaling::strong);
  auto const better = remedies();
  if (better.empty()) return out;
  out += "changes that would help " + std::to_string(limiting_size().ranks) +
         " ranks with the same batch each, predicted:\n";
  return out + detail::lines(better);
}

LOCKSTEP_INLINE Prediction const& ScalingReport::limiting_size() const {
  auto const poor = std::find_if(weak_.begin(), weak_.end(), [](auto const& p) { return p.efficiency < 0.8; });
  return poor == weak_.end() ? weak_.back() : *poor;
}

LOCKSTEP_INLINE std::string ScalingReport::table(std::string const& title, std::vector<Prediction> const& sizes,
                                                 Scaling scaling) const {
  if (sizes.empty()) return {};
  std::string out = title + "\n";
  char line[160];
  std::snprintf(line, sizeof line, "%10s %10s %13s %12s %11s  %s\n", "ranks", "step ms", "exposed ms", "samples/s",
                "efficiency", "bound by");
  out += line;
  for (auto const& size : sizes) {
    std::snprintf(line, sizeof line, "%10lld %10s %13s %12s %9s %%  %s\n", static_cast<long long>(size.ranks),
                  detail::rounded(size.step_seconds * 1e3, 1).c_str(),
                  detail::rounded(size.exposed_seconds * 1e3, 1).c_str(),
                  detail::rounded(size.samples_per_second, 1).c_str(),
                  detail::rounded(100 * size.efficiency, 0).c_str(), size.bound);
    out += line;
  }
  return out + summary(sizes, predict(work_, 1, fabric_, scaling).samples_per_second) + "\n";
}

LOCKSTEP_INLINE std::string ScalingReport::summary(std::vector<Prediction> const& sizes, double alone) {
  auto const paying = efficient_until(sizes, alone), helping = useful_until(sizes, alone);
  if (paying == sizes.back().ranks)
    return "up to " + std::to_string(paying) + " ranks, twice the ranks give at least 1.5 times the samples/s";
  auto const next = std::find_if(sizes.begin(), sizes.end(), [&](auto const& size) { return size.ranks > paying; });
  auto out = "beyond " + std::to_string(paying) + " rank" + (paying == 1 ? "" : "s") +
             ", twice the ranks give less than 1.5 times the samples/s, because of: " + next->bound;
  if (helping < sizes.back().ranks) out += "; more than " + std::to_string(helping) + " do not help";
  return out;
}

}}}  // namespace lockstep::scaling
