// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include <lockstep/scaling/study/study.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

/// One finding of a study, with what to do about it.
struct Finding {
  /// Kind of a finding.
  enum class Kind {
    error,    ///< a failure, or results that differ and should not
    remedy,   ///< a change that makes runs faster
    advice,   ///< a choice that the numbers decide
    nothing,  ///< nothing to do
  };

  Kind kind = Kind::advice;    ///< of this finding
  double gain = 0;             ///< gain in samples per second: 0.1 is 1.1 times as fast; 0: unknown
  bool predicted = false;      ///< the gain is a prediction, or an upper bound
  std::string group;           ///< title of the group
  std::string finding;         ///< sentence for the report
  std::string cause;           ///< sentence; may be empty
  std::string evidence;        ///< sentence with the measured values; may be empty
  std::string recommendation;  ///< what to do
};

/// Returns the findings of all groups: errors first, then by gain.
[[nodiscard]] std::vector<Finding> findings_of(Study const& study);

}}}  // namespace lockstep::scaling

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/scaling/study/findings.ipp>
#endif
