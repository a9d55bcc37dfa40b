// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/data/loader/loader_stats.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// The samples that the loaders of all ranks have left out or replaced. Ranks read other samples in each epoch, so two
/// of them may have met one sample.
class UnreadableSamples {
 public:
  /// Returns what a rank's loader skipped and replaced as bytes for another rank: empty if there was none.
  [[nodiscard]] static std::string packed(Index skipped, Index replaced,
                                          std::vector<data::SampleFailure> const& failures);
  /// Adds what `packed` returned on a rank.
  void add(std::string_view packed);
  /// Returns a note with the number of samples and the first eight reasons, by their order in the dataset; empty if
  /// there are none. `of` names the loader: " of the evaluation".
  [[nodiscard]] std::string note(std::string_view of = {}) const;

 private:
  Index skipped_ = 0, replaced_ = 0;
  bool is_complete_ = true;  ///< each rank has all of its samples
  std::vector<data::SampleFailure> samples_;
};

}}}  // namespace lockstep::app::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/logs/unreadable_samples.ipp>
#endif
