// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include <lockstep/train/logs/observer.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Formats an evaluation with a ConfusionMatrix as text. It has one line per class with samples, recall, precision and
/// F1, then their macro means and the matrix with one row per label. Classes that are neither a label nor predicted do
/// not count in the means.
/// @param names of the classes, in the order of the labels
/// @throws ConfigError if the report has no confusion matrix of that many classes
[[nodiscard]] std::string class_report(EvaluationReport const& report, std::vector<std::string> const& names);

}}}  // namespace lockstep::train

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/metrics/class_report.ipp>
#endif
