// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <tuple>
#include <vector>

#include <lockstep/app/command.hpp>
#include <lockstep/core/progress.hpp>
#include <lockstep/lockstep.hpp>

/// --predictions of the trainers that classify.
namespace class_predictions {

inline void add(lockstep::app::Command& command, std::string& path, std::string const& samples) {
  command.add("--predictions", path,
              "CSV file for the predictions of the evaluation " + samples + ", written at the end");
}

/// Writes a row for each evaluation sample: its name, its label and the predicted class. A label below 0 is none.
/// @param name called with the sample's position in the evaluation data   @collective
template <class Sample, class Label>
void write(auto const& training, auto& trainer, auto& evaluation, Label Sample::*label,
           std::vector<std::string> const& classes, std::string const& column, auto const& name) {
  auto const& path = training.options().predictions;
  if (path.empty()) return;
  auto const class_name = [&](lockstep::Index i) { return i < 0 ? "" : classes[static_cast<std::size_t>(i)]; };
  lockstep::Progress progress(training.is_main_rank() ? stdout : nullptr);
  lockstep::train::write_predictions(
      path, trainer, evaluation, {column, "label", "predicted"},
      [&](auto const& logits, auto const& batch, lockstep::Index k) {
        auto const* const first = &logits.value(k, 0);
        if (std::any_of(first, first + logits.extent(1), [](float logit) { return std::isnan(logit); }))
          throw lockstep::Error("--predictions: the model predicts NaN, which is no class");
        return std::tuple{name(batch.positions()(k)), class_name(batch[label][k]),
                          class_name(lockstep::train::predicted_class(logits, k))};
      },
      progress.steps("predicting"), training.stop_token());
}

}  // namespace class_predictions
