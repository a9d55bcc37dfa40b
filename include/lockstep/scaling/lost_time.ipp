// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <limits>

#include <lockstep/scaling/lost_time.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling::detail {

/// A model whose gradients have fewer bytes is communicated in the time that a collective needs to start.
inline constexpr double small_model_bytes = 128 << 10;

/// Looks at loader threads that found a lock, as a fraction, above which locks are the reason for slow data.
inline constexpr double least_locked = 0.25;

/// Estimates of what a step loses, in milliseconds.
class LossEstimate {
 public:
  explicit LossEstimate(StepProfile const& profile) : profile_(profile), ranks_(profile.ranks) {
    auto const n = static_cast<double>(ranks_.size());
    for (auto const& rank : ranks_) {
      own_ += work_of(rank) / n;
      delayed_ += std::min(std::max(0.0, rank.compute_ms - compute_of(rank)), rank.queued_ms) / n;
      queued_ += rank.queued_ms / n;
      throttled_ = std::max(throttled_, rank.throttled_ms);
      optimizer_ += update_of(rank) / n;
      communication_ += rank.communication_ms / n;
      deviation_ += rank.deviation_ms / n;
      observed_ += rank.observed;
      locked_ += rank.locked;
    }
    find_scarcest_processors();
    throttled_ /= std::max(1.0, std::min(threads_, cores_));
  }

  [[nodiscard]] std::vector<LostTime> losses() && {
    if (throttled_ > 0)
      add(Cause::processor_quota, throttled_,
          "the quota of the control group stops the run for " + share(throttled_) +
              ": raise it (docker run --cpus, limits.cpu, CPUQuota), or use fewer ranks or threads");
    if (bool const oversubscribed = threads_ > cores_; oversubscribed && queued_ >= least_lost_time / 2 * own_)
      add(Cause::oversubscription, own_ * (threads_ / cores_ - 1),
          rounded(threads_, 0) + " training threads take turns on " + rounded(cores_, 0) +
              " processors: fewer ranks, devices or --threads");
    else if (throttled_ == 0)
      add(Cause::other_programs, delayed_,
          "training threads wait during " + share(delayed_) +
              " for processors that other programs or the loader use: run it on processors of its own");
    add_data();
    add_repeated();
    std::stable_sort(out_.begin(), out_.end(), [](LostTime const& a, LostTime const& b) { return a.ms > b.ms; });
    return std::move(out_);
  }

 private:
  /// Returns the processor time of a rank's passes, which other programs hardly change. With several threads, the
  /// training thread also waits for the others.
  [[nodiscard]] static double compute_of(RankStep const& rank) {
    if (!(rank.processor_ms > 0)) return rank.compute_ms;
    auto const waits = rank.threads > 1 ? std::max(rank.processor_ms, rank.compute_ms - rank.queued_ms) : 0;
    return std::min(std::max(rank.processor_ms, waits), rank.compute_ms);
  }
  /// Returns the time of an update, shorter by the same factor.
  [[nodiscard]] static double update_of(RankStep const& rank) {
    return rank.compute_ms > 0 ? rank.optimizer_ms * compute_of(rank) / rank.compute_ms : rank.optimizer_ms;
  }
  [[nodiscard]] static double work_of(RankStep const& rank) { return compute_of(rank) + update_of(rank); }
  /// Returns how long a rank waits for data if its threads always have a processor: until the loader, which works at
  /// the same time, has made the next batch.
  [[nodiscard]] static double data_of(RankStep const& rank) {
    if (rank.loader_ms > 0) return std::min(rank.data_ms, std::max(0.0, rank.loader_ms - work_of(rank)));
    return rank.compute_ms > 0 ? rank.data_ms * compute_of(rank) / rank.compute_ms : rank.data_ms;
  }

  /// Sets the training threads that share a set of processors, and its size, where threads are most.
  void find_scarcest_processors() {
    for (auto const& rank : ranks_) {
      double threads = 0;
      for (auto const& other : ranks_) threads += other.core_set == rank.core_set ? other.threads : 0;
      if (cores_ > 0 && threads / rank.cores <= threads_ / cores_) continue;
      threads_ = threads;
      cores_ = rank.cores;
    }
  }

  [[nodiscard]] double share_of(double ms) const { return ms / (own_ + ms); }
  [[nodiscard]] std::string share(double ms) const { return rounded(100 * share_of(ms), 0) + " % of a step"; }
  void add(Cause cause, double ms, std::string summary) {
    if (ms > 0 && share_of(ms) >= least_lost_time) out_.push_back({cause, ms, std::move(summary)});
  }

  void add_data() {
    bool const locks = observed_ >= 4 && locked_ / observed_ >= least_locked;
    double least = std::numeric_limits<double>::infinity(), most = 0;
    for (auto const& rank : ranks_) {
      least = std::min(least, data_of(rank));
      most = std::max(most, data_of(rank));
    }
    if (locks)  // whichever rank gets the lock: the others wait for the slowest
      add(Cause::lock_contention, most,
          "training waits for data during " + share(most) +
              ", and loader threads that read were waiting for a lock in " + rounded(100 * locked_ / observed_, 0) +
              " % of " + rounded(observed_, 0) +
              " looks: take locks out of Dataset::get; more --num-workers would not help");
    else
      add(Cause::slow_data, least,
          "training waits for data during " + share(least) +
              ": more --num-workers if cores are free, or samples that are cheaper to read");
    // Which of the ranks waits for data is chance: while one waits, the loaders of the others make progress. So the
    // times of the loaders are compared, not the waits.
    auto const whole = [&](RankStep const& rank) {
      if (locks) return work_of(rank);
      return rank.loader_ms > 0 ? std::max(work_of(rank), std::min(rank.loader_ms, work_of(rank) + most))
                                : work_of(rank) + data_of(rank);
    };
    auto const [fast, slow] = std::minmax_element(
        ranks_.begin(), ranks_.end(), [&](RankStep const& a, RankStep const& b) { return whole(a) < whole(b); });
    add(Cause::slow_rank, whole(*slow) - whole(*fast),
        "the others wait for rank " + std::to_string(slow - ranks_.begin()) + ", whose own work takes " +
            rounded(whole(*slow), 1) + " ms of a step, while the fastest rank's takes " + rounded(whole(*fast), 1) +
            " ms: look at its data, its share of the work and its host");
  }

  /// Adds work that each step repeats, and waits for steps that take longer on another rank.
  void add_repeated() {
    auto const n = static_cast<Index>(ranks_.size());
    auto const uneven = n > 1 ? std::min(communication_, deviation_ * expected_maximum(n)) : 0;
    add(Cause::uneven_batches, uneven,
        "ranks wait for each other during " + share(uneven) +
            " because the work of a batch differs from step to step: group samples of similar length, or limit batches "
            "by tokens");
    auto const sent = n > 1 ? sent_ms(uneven) : 0;
    auto const repeated = sent + optimizer_, rest = own_ - optimizer_;
    auto const part = repeated > 0 ? repeated / (repeated + rest) : 0;
    if (part < least_lost_time) return;
    auto const text = rounded(100 * part, 0) + " % of a step";
    if (n > 1 && profile_.gradient_bytes <= small_model_bytes && sent > optimizer_)
      out_.push_back({Cause::small_model, repeated,
                      "the model is so small that starting its communication takes " + text +
                          ": train on one rank, or run several trainings side by side; a larger --batch-size makes it "
                          "rarer"});
    else
      out_.push_back(
          {Cause::small_batch, repeated,
           (n > 1 ? "communication and update of all parameters take " : "the update of all parameters takes ") + text +
               " for a batch of " + rounded(profile_.samples() / static_cast<double>(profile_.shards), 0) +
               " per device: a larger --batch-size, or --grad-accum-steps, makes them rarer"});
  }

  /// Returns the communication of a step without waits for other ranks. A fast step of less than a time slice has none.
  [[nodiscard]] double sent_ms(double uneven) const {
    constexpr double time_slice_ms = 1;
    auto sent = ranks_[0].communication_ms, waited = 0.0;
    for (auto const& rank : ranks_) {
      sent = std::min(sent, rank.communication_ms);
      waited = std::max(waited, data_of(rank));
    }
    auto const fast = profile_.fast_step_ms;
    if (fast > 0) sent = std::min(sent, std::max(0.0, fast - own_ - waited));
    return fast > 0 && fast < time_slice_ms ? sent : std::max(0.0, sent - uneven - queued_);
  }

  StepProfile const& profile_;
  std::vector<RankStep> const& ranks_;
  std::vector<LostTime> out_;
  double own_ = 0;  // mean work of a rank
  double delayed_ = 0, queued_ = 0, throttled_ = 0, optimizer_ = 0, communication_ = 0, deviation_ = 0;
  double observed_ = 0, locked_ = 0, threads_ = 0, cores_ = 0;
};

}}}  // namespace lockstep::scaling::detail

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

LOCKSTEP_INLINE char const* name(Cause cause) noexcept {
  switch (cause) {
    case Cause::slow_data:
      return "slow data";
    case Cause::lock_contention:
      return "lock contention";
    case Cause::slow_rank:
      return "slow rank";
    case Cause::oversubscription:
      return "oversubscription";
    case Cause::processor_quota:
      return "processor quota";
    case Cause::other_programs:
      return "other programs";
    case Cause::uneven_batches:
      return "uneven batches";
    case Cause::small_batch:
      return "small batch";
    case Cause::small_model:
      return "small model";
    case Cause::none:
      break;
  }
  return "none";
}

LOCKSTEP_INLINE std::vector<LostTime> find_lost_time(StepProfile const& profile) {
  if (profile.ranks.empty()) return {};
  return detail::LossEstimate(profile).losses();
}

}}}  // namespace lockstep::scaling
