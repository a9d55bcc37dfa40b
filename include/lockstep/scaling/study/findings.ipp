// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include <lockstep/scaling/detail/rounded.hpp>
#include <lockstep/scaling/lost_time.hpp>
#include <lockstep/scaling/scaling_report.hpp>
#include <lockstep/scaling/speed_up.hpp>
#include <lockstep/scaling/study/findings.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

namespace detail {

[[nodiscard]] LOCKSTEP_INLINE bool less_is_better(std::string const& metric) {
  return metric.find("error") != std::string::npos || metric.find("loss") != std::string::npos;
}

/// Returns the difference of metrics that chance explains: twice the larger standard deviation over repeats, and of an
/// accuracy also twice the standard error of the difference of two evaluations, as of independent samples.
[[nodiscard]] LOCKSTEP_INLINE double metric_limit(std::string const& metric, Configuration const& a,
                                                  Configuration const& b) {
  auto limit = std::max(0.005, 2 * std::max(a.metric.deviation, b.metric.deviation));
  if (metric.find("accuracy") == std::string::npos) return limit;
  double variance = 0;
  for (auto const* const one : {&a, &b}) {
    auto const evaluated = one->runs.empty() ? Index{0} : one->runs[0].run.evaluated;
    auto const part = std::clamp(one->metric.mean, 0.0, 1.0);
    if (evaluated > 0) variance += part * (1 - part) / static_cast<double>(evaluated);
  }
  return std::max(limit, 2 * std::sqrt(variance));
}

/// Returns the relative difference of two rates that noise explains, at least 3 %: the standard deviations of repeats,
/// or for a single run the standard error of its epochs.
[[nodiscard]] LOCKSTEP_INLINE double noise(Configuration const& a, Configuration const& b) {
  double squares = 0;
  for (auto const* const one : {&a, &b}) {
    auto const& epochs = one->epoch_seconds;
    auto const relative = one->samples_per_second.count > 1 ? one->samples_per_second.relative()
                          : epochs.count > 1 ? epochs.relative() / std::sqrt(static_cast<double>(epochs.count))
                                             : 0;
    squares += relative * relative;
  }
  return std::max(0.03, std::sqrt(squares));
}

/// Adds the findings of one group.
class GroupFindings {
 public:
  GroupFindings(StudyGroup const& group, std::vector<Finding>& out) : group_(group), out_(out) {}

  void add_all() {
    failures();
    results();
    for (auto const* const parallel : {"ddp", "dp"})
      if (auto const most = group_.most_devices(parallel); most > 1) scaling(*group_.find(parallel, most));
    batch();
    dp_against_ddp();
    learning_rate();
    unequal_repeats();
    limit();
  }

 private:
  Finding& add(Finding::Kind kind, std::string finding) {
    out_.push_back({.kind = kind,
                    .group = group_.title,
                    .finding = std::move(finding),
                    .cause = {},
                    .evidence = {},
                    .recommendation = {}});
    return out_.back();
  }
  static std::string percent(double part) { return rounded(100 * part, 0) + " %"; }
  /// Returns a clause as a sentence.
  static std::string sentence(std::string text) {
    if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
    return text + ".";
  }
  static std::string mb(double bytes) { return rounded(bytes / 1e6, 1) + " MB"; }

  void failures() {
    for (auto const& one : group_.configurations) {
      if (one.failed == 0) continue;
      auto& finding = add(Finding::Kind::error, one.label() + ": " + std::to_string(one.failed) +
                                                    (one.failed == 1 ? " run failed." : " runs failed."));
      finding.cause = "The trainer ended with an error.";
      finding.evidence = one.message;
      finding.recommendation = "Correct the cause and start the study again; finished runs are kept.";
    }
  }

  void results() {
    for (auto const& one : group_.configurations)
      if (one.parallel == "dp" && group_.parameters_equal(one.devices) == "differ") {
        auto const devices = std::to_string(one.devices);
        auto& finding = add(Finding::Kind::error, "dp and ddp on " + devices + " devices learn different parameters.");
        finding.cause = "The runs have equal settings, so their parameters should be equal bit for bit.";
        finding.evidence = "parameters_sha256 of the runs with the same --seed differ.";
        finding.recommendation =
            "Look for layers or losses that depend on other samples of the batch, and run again "
            "with --check-replicas-every 100.";
      }
  }

  /// Speed-up of the largest run of a policy, and its limit.
  void scaling(Configuration const& most) {
    if (!most.speed_up.is_known()) return;
    auto const factor = most.speed_up.mean, efficiency = most.efficiency.mean;
    SpeedUp const speed_up(group_.baseline.profile, most.profile);
    auto const bound = speed_up.bound();
    auto const times = rounded(factor, 2) + " times as fast as one device (" + percent(efficiency) + " of ideal)";
    bool const poor = efficiency < 0.75;
    auto& finding =
        add(poor ? Finding::Kind::remedy : Finding::Kind::nothing,
            factor < 1 ? "Negative scaling: " + most.label() + " is " + times + "."
                       : (poor ? "Poor scaling: " : "Good scaling: ") + most.label() + " is " + times + ".");
    finding.evidence = speed_up.summary();
    if (finding.evidence.starts_with("more")) finding.evidence[0] = 'M';
    auto const step_ms = most.profile.step_ms(), lost_ms = std::clamp(speed_up.lost_ms(), 0.0, 0.95 * step_ms);
    if (step_ms > 0) finding.gain = step_ms / (step_ms - lost_ms) - 1;
    finding.predicted = true;
    auto const processors = processors_of(most);
    auto const threads = most.devices * most.threads;
    if (bound == "communication") {
      finding.cause = "A step computes too little for the gradients that it sends.";
      finding.recommendation =
          "Give each device a larger batch (--batch-size, or --grad-accum-steps), so that a step computes more for the "
          "same bytes, or halve the bytes with --gradient-wire bf16.";
    } else if (bound == "compute" && processors > 0 && threads > processors) {
      finding.cause = std::to_string(threads) + " training threads share " + std::to_string(processors) +
                      " processors: the runs are oversubscribed.";
      finding.recommendation = "Use at most " + std::to_string(std::max<Index>(1, processors / most.threads)) +
                               " devices here. More devices need more processors.";
    } else if (bound == "compute") {
      finding.cause =
          "Forward and backward take longer when all devices compute: they share caches, memory bandwidth "
          "and clock frequency with each other and with other programs.";
      finding.recommendation =
          "Run nothing else on the machine, use devices that share less, or use --precision bf16, "
          "which halves the bytes of activations.";
    } else if (bound == "optimizer") {
      finding.cause = "The optimizer's step does not get shorter with more devices.";
      finding.recommendation =
          "Give each device a larger batch, or divide the optimizer with ddp and --shard-optimizer.";
    } else if (bound == "data") {
      finding.cause = "The loaders do not deliver batches as fast as the devices train.";
      finding.recommendation = "Use more --num-workers, samples that are cheaper to read, or a cache.";
    } else {
      finding.cause = "No phase of a step loses time.";
      finding.recommendation = "Nothing to do.";
    }
    if (auto const lost = find_lost_time(most.profile); poor && !lost.empty()) {
      // The run's own verdict knows more than the comparison of phases: processor time, quotas, locks.
      auto const& first = lost[0];
      auto const colon = first.summary.find(": ");
      finding.cause = sentence(std::string(name(first.cause)) + ": " + first.summary.substr(0, colon));
      if (colon != std::string::npos) finding.recommendation = sentence(first.summary.substr(colon + 2));
      finding.gain = step_ms / (step_ms - std::clamp(first.ms, 0.0, 0.95 * step_ms)) - 1;
    }
    if (!poor) {
      finding.gain = 0;
      if (bound == "nothing" || efficiency > 0.9) finding.recommendation = "Nothing to do.";
    }
  }

  /// The effect of a larger batch, as predicted.
  void batch() {
    if (!group_.workload) return;
    auto const most = std::max(group_.most_devices("ddp"), Index{2});
    ScalingReport const report(*group_.workload, group_.fabric, {most});
    for (auto const& remedy : report.remedies()) {
      if (remedy.gain < 0.05) break;
      auto& finding = add(Finding::Kind::remedy, "A change is predicted to make ddp on " + std::to_string(most) +
                                                     " devices " + percent(remedy.gain) + " faster.");
      finding.gain = remedy.gain;
      finding.predicted = true;
      auto const step = predict(*group_.workload, most, group_.fabric, Scaling::weak);
      auto const ms = [](double seconds) { return rounded(1e3 * seconds, 1) + " ms"; };
      std::pair<double, char const*> const parts[] = {
          {step.exposed_seconds, "Communication that backward does not hide"},
          {step.slowest_seconds, "The wait for the slowest device"},
          {step.optimizer_seconds, "The update of all parameters"},
          {step.data_seconds, "The wait for data"}};
      finding.cause = std::string(std::max_element(std::begin(parts), std::end(parts))->second) +
                      " is the largest part of a step in which no device computes gradients.";
      finding.evidence = "A step is predicted to take " + ms(step.step_seconds) + ": compute " + ms(step.pass_seconds) +
                         ", communication not hidden " + ms(step.exposed_seconds) +
                         ", waiting for the slowest device " + ms(step.slowest_seconds) + ", optimizer " +
                         ms(step.optimizer_seconds) + ", waiting for data " + ms(step.data_seconds) + ".";
      finding.recommendation = "Try " + remedy.description + ".";
      return;
    }
  }

  void dp_against_ddp() {
    Index common = 0;
    for (auto const& one : group_.configurations)
      if (one.parallel == "dp" && one.has_speed())
        if (auto const* const other = group_.find("ddp", one.devices); other && other->has_speed() && !other->predicted)
          common = std::max(common, one.devices);
    if (common < 2) return;
    auto const &dp = *group_.find("dp", common), &ddp = *group_.find("ddp", common);
    auto const ratio = ddp.samples_per_second.mean / dp.samples_per_second.mean;
    bool const equal = std::abs(ratio - 1) <= noise(dp, ddp);
    auto const devices = std::to_string(common) + " devices";
    auto& finding = add(Finding::Kind::advice,
                        equal ? "dp and ddp are equally fast on " + devices + "."
                              : (ratio > 1 ? "ddp is " : "dp is ") + rounded(ratio > 1 ? ratio : 1 / ratio, 2) +
                                    " times as fast as " + (ratio > 1 ? "dp" : "ddp") + " on " + devices + ".");
    finding.gain = equal ? 0 : std::abs(ratio > 1 ? ratio - 1 : 1 / ratio - 1);
    finding.cause =
        "dp computes in threads of one process, and its first device sums all gradients and updates; ddp "
        "runs one process per device, and each updates.";
    finding.evidence =
        "dp " + rounded(dp.samples_per_second.mean, 1) + " samples/s, ddp " + rounded(ddp.samples_per_second.mean, 1) +
        " samples/s; parameters " + group_.parameters_equal(common) + "; exposed communication of a step: dp " +
        rounded(dp.profile.communication_ms, 1) + " ms, ddp " + rounded(ddp.profile.communication_ms, 1) + " ms";
    if (!std::isnan(dp.first_device_bytes) && !std::isnan(dp.other_devices_bytes))
      finding.evidence += "; memory: first device of dp " + mb(dp.first_device_bytes) + ", its others " +
                          mb(dp.other_devices_bytes) + ", ddp " + mb(ddp.first_device_bytes);
    finding.evidence += ".";
    auto const *dp8 = group_.find("dp", StudyGroup::predicted_devices),
               *ddp8 = group_.find("ddp", StudyGroup::predicted_devices);
    finding.recommendation = equal
                                 ? "Use dp if one process is easier to start or debug, and ddp for several hosts."
                                 : std::string("Use ") + (ratio > 1 ? "ddp." : "dp on one host, and ddp for several.");
    if (dp8 && ddp8 && dp8->speed_up.is_known() && ddp8->speed_up.is_known() && dp8 != &dp && ddp8 != &ddp) {
      auto const of_dp = dp8->speed_up.mean, of_ddp = ddp8->speed_up.mean, most = std::max(of_dp, of_ddp),
                 least = std::min(of_dp, of_ddp);
      bool const alike = most < 1.1 * least;  // predictions are not more exact
      finding.recommendation +=
          " On " + std::to_string(StudyGroup::predicted_devices) + " devices, " +
          (alike ? std::string("both are predicted to be about as fast: dp ") + rounded(of_dp, 1) + " and ddp " +
                       rounded(of_ddp, 1)
                 : std::string(of_ddp > of_dp ? "ddp" : "dp") + " is predicted to be faster: " + rounded(most, 1) +
                       " against " + rounded(least, 1)) +
          " times one device.";
    }
  }

  void learning_rate() {
    Configuration const *alone = nullptr, *most = nullptr;
    for (auto const& one : group_.configurations) {
      if (!one.metric.is_known() || one.runs.empty()) continue;
      if (one.devices == 1) alone = &one;
      if (one.devices > 1 && (!most || one.devices >= most->devices)) most = &one;
    }
    if (!alone || !most) return;
    auto const drop = (alone->metric.mean - most->metric.mean) * (less_is_better(group_.metric) ? -1 : 1);
    auto const limit = metric_limit(group_.metric, *alone, *most);
    auto const grows = most->profile.samples() / alone->profile.samples();
    auto const rule = setting(*most, "lr-scaling"), warmup = setting(*most, "warmup-epochs");
    auto const values = group_.metric + " " + rounded(alone->metric.mean, 4) + " on one device, " +
                        rounded(most->metric.mean, 4) + " with " + most->label();
    auto const steps =
        std::to_string(alone->runs[0].run.steps) + " and " + std::to_string(most->runs[0].run.steps) + " steps";
    bool const lost = drop > limit;
    auto& finding = add(lost ? Finding::Kind::remedy : Finding::Kind::nothing,
                        lost ? "More devices reach a worse " + group_.metric + "."
                             : "More devices reach the same " + group_.metric + ".");
    auto const evaluated = alone->runs[0].run.evaluated;
    finding.evidence = values + "; " + steps + "; differences up to " + rounded(limit, 4) + " are chance" +
                       (evaluated > 0 ? ", in evaluations on " + std::to_string(evaluated) + " samples." : ".");
    if (grows < 1.01) {
      finding.cause = "The batch over all devices is equal in all runs.";
      finding.recommendation = lost ? "Look for layers that depend on the batch of a device, such as batch norm."
                                    : "Keep the learning rate.";
    } else {
      finding.cause = "The batch over all devices is " + rounded(grows, 1) +
                      " times as large, so an epoch has fewer "
                      "steps.";
      if (!lost)
        finding.recommendation = rule == "none" ? "Keep the learning rate: it needs no scaling for this batch."
                                                : "Keep --lr-scaling " + rule + ".";
      else if (rule == "none")
        finding.recommendation = "Scale the learning rate with the batch (--lr-scaling linear, here " +
                                 rounded(grows, 1) +
                                 " times the rate) after a warm-up (--warmup-epochs 1), or keep "
                                 "the batch with --global-batch-size.";
      else
        finding.recommendation = warmup == "0"
                                     ? "Warm the learning rate up (--warmup-epochs 1), or use --lr-scaling sqrt."
                                     : "Use --lr-scaling sqrt, more epochs, or --global-batch-size.";
    }
  }

  void unequal_repeats() {
    Configuration const* worst = nullptr;
    for (auto const& one : group_.configurations)
      if (one.samples_per_second.count > 1 &&
          (!worst || one.samples_per_second.relative() > worst->samples_per_second.relative()))
        worst = &one;
    if (!worst || worst->samples_per_second.relative() < 0.1) return;
    auto& finding = add(Finding::Kind::advice, "Repeated runs of " + worst->label() + " differ by " +
                                                   percent(worst->samples_per_second.relative()) + ".");
    finding.cause = "Other programs ran on the machine, or its clock frequency changed.";
    finding.evidence = std::to_string(worst->samples_per_second.count) + " runs, " +
                       rounded(worst->samples_per_second.mean, 1) + " samples/s with a standard deviation of " +
                       rounded(worst->samples_per_second.deviation, 1) + ".";
    finding.recommendation = "Run nothing else, and repeat more often, before you compare small differences.";
  }

  void limit() {
    if (group_.curve.size() < 2) return;
    std::vector<Prediction> const sizes(group_.curve.begin() + 1, group_.curve.end());
    auto const alone = group_.curve[0].samples_per_second;
    auto const paying = ScalingReport::efficient_until(sizes, alone);
    bool const all = paying == sizes.back().ranks;
    auto& finding =
        add(Finding::Kind::advice,
            all ? "ddp is predicted to pay up to " + std::to_string(paying) + " devices and beyond."
                : "ddp is predicted to pay up to " + std::to_string(paying) + (paying == 1 ? " device." : " devices."));
    finding.predicted = true;
    auto const next = std::find_if(sizes.begin(), sizes.end(), [&](auto const& size) { return size.ranks > paying; });
    finding.cause = next == sizes.end()
                        ? "Each doubling gives at least 1.5 times the samples/s."
                        : std::string("The next doubling gives less than 1.5 times the samples/s, because of: ") +
                              next->bound + ".";
    finding.evidence = "Predicted for devices with processors of their own, with messages of " +
                       rounded(group_.fabric.latency_seconds * 1e6, 1) + " us and " +
                       rounded(1e-9 / group_.fabric.seconds_per_byte, 2) + " GB/s.";
    finding.recommendation = (all ? std::string()
                                  : "Use at most " + std::to_string(paying) + (paying == 1 ? " device" : " devices") +
                                        " with this batch. ") +
                             "If your network differs, describe it with --link, or --alpha-us and --beta-gb-s.";
    if (auto const most = group_.most_devices("ddp"); most > 1) {
      auto const measured = group_.find("ddp", most)->samples_per_second.mean;
      auto const expected =
          std::find_if(sizes.begin(), sizes.end(), [&](auto const& size) { return size.ranks == most; });
      if (expected != sizes.end() && measured < 0.75 * expected->samples_per_second) {
        finding.evidence += " The measured ddp " + std::to_string(most) + " has " +
                            percent(measured / expected->samples_per_second) + " of the predicted samples/s.";
        finding.recommendation +=
            " On this machine the devices share processors, caches or memory, with each other or with other programs, "
            "which the prediction leaves out.";
      }
    }
  }

  static std::string setting(Configuration const& one, std::string const& name) {
    auto const& settings = one.runs[0].run.settings;
    auto const found = settings.find(name);
    auto value = found == settings.end() ? std::string("none") : found->second;
    std::erase(value, '"');
    return value;
  }
  static Index processors_of(Configuration const& one) {
    auto const& ranks = one.profile.ranks;
    bool const shared =
        std::all_of(ranks.begin(), ranks.end(), [&](auto const& rank) { return rank.core_set == ranks[0].core_set; });
    if (!ranks.empty() && shared) return static_cast<Index>(ranks[0].cores);
    for (auto const& run : one.runs)
      if (run.entry && run.entry->processors > 0) return run.entry->processors;
    return 0;
  }

  StudyGroup const& group_;
  std::vector<Finding>& out_;
};

/// Adds failures of runs that no group has, because no run of their data set or batch has a result.
LOCKSTEP_INLINE void add_other_failures(Study const& study, std::vector<Finding>& out) {
  std::map<std::pair<std::string, std::string>, int> counts;  // by data set and message
  for (auto const& run : study.missing) {
    if (!run.failed || run.is_in_group || !run.entry) continue;
    auto const& data = run.entry->data;
    ++counts[{data.empty() ? run.entry->example : StudyRun::dataset_name(data), run.reason}];
  }
  for (auto const& [what, count] : counts)
    out.push_back({.kind = Finding::Kind::error,
                   .group = what.first,
                   .finding = std::to_string(count) + (count == 1 ? " run failed." : " runs failed."),
                   .cause = "The trainer ended with an error.",
                   .evidence = what.second,
                   .recommendation = "Correct the cause and start the study again; finished runs are kept."});
}

/// Compares groups of one data set that differ only in the batch.
LOCKSTEP_INLINE void compare_batches(Study const& study, std::vector<Finding>& out) {
  for (auto const& group : study.groups) {
    if (group.fastest() == nullptr) continue;
    StudyGroup const* better = nullptr;
    auto const* const own = group.fastest();
    for (auto const& other : study.groups) {
      if (&other == &group || other.dataset != group.dataset) continue;
      auto const &a = group.any_run(), &b = other.any_run();
      if (!a.run.differences(b.run).empty() || a.batch_is_global != b.batch_is_global || a.example != b.example ||
          a.backend != b.backend)
        continue;
      auto const* const like = other.find(own->parallel, own->devices);
      if (!like || !like->has_speed() || like->predicted) continue;
      if (like->samples_per_second.mean > (1 + noise(*own, *like)) * own->samples_per_second.mean &&
          (!better ||
           like->samples_per_second.mean > better->find(own->parallel, own->devices)->samples_per_second.mean))
        better = &other;
    }
    if (!better) continue;
    auto const& like = *better->find(own->parallel, own->devices);
    auto const here = std::to_string(group.any_run().batch), there = std::to_string(better->any_run().batch);
    auto const gain = like.samples_per_second.mean / own->samples_per_second.mean - 1;
    Finding finding{.kind = Finding::Kind::remedy,
                    .gain = gain,
                    .group = group.title,
                    .finding = "Batch " + there + " is " + rounded(1 + gain, 2) + " times as fast as batch " + here +
                               " with " + own->label() + ".",
                    .cause = like.profile.samples() > own->profile.samples()
                                 ? "A larger batch shares the optimizer and the communication of a step among more "
                                   "samples."
                                 : "Activations of a smaller batch need less memory, and stay in the caches.",
                    .evidence = "Measured: " + rounded(own->samples_per_second.mean, 1) + " and " +
                                rounded(like.samples_per_second.mean, 1) + " samples/s",
                    .recommendation = "Use batch " + there + " instead of " + here + "."};
    if (own->metric.is_known() && like.metric.is_known()) {
      finding.evidence +=
          "; " + group.metric + " " + rounded(own->metric.mean, 4) + " and " + rounded(like.metric.mean, 4);
      auto const drop = (own->metric.mean - like.metric.mean) * (less_is_better(group.metric) ? -1 : 1);
      if (drop > metric_limit(group.metric, *own, like))
        finding.recommendation = "Use batch " + there + " only with a learning rate that restores the " + group.metric +
                                 " (--lr-scaling linear and --warmup-epochs 1), or with more epochs.";
    }
    finding.evidence += ".";
    out.push_back(std::move(finding));
  }
}

}  // namespace detail

LOCKSTEP_INLINE std::vector<Finding> findings_of(Study const& study) {
  std::vector<Finding> out;
  detail::add_other_failures(study, out);
  for (auto const& group : study.groups) detail::GroupFindings(group, out).add_all();
  detail::compare_batches(study, out);
  std::stable_sort(out.begin(), out.end(),
                   [](auto const& a, auto const& b) { return a.kind != b.kind ? a.kind < b.kind : a.gain > b.gain; });
  return out;
}

}}}  // namespace lockstep::scaling
