// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/core/json.hpp>
#include <lockstep/core/json_writer.hpp>
#include <lockstep/parallel/gradients/collective_cost.hpp>
#include <lockstep/scaling/detail/device_limit.hpp>
#include <lockstep/scaling/detail/remedy.hpp>
#include <lockstep/scaling/step_profile.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

/// Measurements of short runs, each without some of the work, and the changes that they suggest for this machine. Rates
/// are for all ranks.
struct Diagnosis {
  StepProfile profile;                     ///< complete steps
  double loader_samples_per_second = 0;    ///< loaders without training
  double replayed_samples_per_second = 0;  ///< steps on batches that were loaded before
  int num_workers = 0;                     ///< workers of each rank's loader
  int shards_here = 1;                     ///< ranks x devices of this host
  int ranks_here = 1;                      ///< ranks of this host
  int cores = 1;                           ///< cores that they share
  bool on_host = true;                     ///< models run on these cores, not on a GPU
  bool can_use_bfloat16 = false;  ///< fp32, on a GPU or a processor with much faster instructions for --precision bf16
  bool can_use_onednn = false;    ///< fp32 with our convolutions, where oneDNN's would be faster
  parallel::CollectiveCost all_reduce = {};  ///< over all ranks, without backward; zeros if not measured

  /// Returns the remedies, the best first, without gains below 2 %.
  [[nodiscard]] std::vector<detail::Remedy> remedies() const;

  /// Returns a table of the measurements, the bottleneck and the remedies.
  [[nodiscard]] std::string text() const;

  /// Returns the report as JSON.
  /// @param run content of run.json for the complete steps
  [[nodiscard]] std::string json(std::string const& run) const;

 private:
  [[nodiscard]] int threads() const noexcept { return shards_here * static_cast<int>(profile.threads); }
  /// Returns an upper bound of the loaders' processor time, as a fraction of the training threads' time.
  [[nodiscard]] double loading() const noexcept;
  [[nodiscard]] double replay_gain() const noexcept;
  /// Returns the remedy if steps wait for batches: the loader is slow, or it does not load ahead.
  [[nodiscard]] std::string data_remedy() const;
};

}}}  // namespace lockstep::scaling

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/scaling/diagnosis.ipp>
#endif
