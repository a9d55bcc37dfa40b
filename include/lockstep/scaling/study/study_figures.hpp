// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include <lockstep/scaling/figure/drawing.hpp>
#include <lockstep/scaling/study/study.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

/// An image of a report.
struct StudyFigure {
  std::string name;     ///< of its files, without extension: "ag_news_throughput"
  std::string caption;  ///< for people
  Drawing drawing;      ///< the image
};

/// Returns the figures of a group: epoch time, speed-up with efficiency, throughput, quality, phases, memory and
/// prediction. Those without a value are left out.
[[nodiscard]] std::vector<StudyFigure> study_figures(StudyGroup const& group);

}}}  // namespace lockstep::scaling

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/scaling/study/study_figures.ipp>
#endif
