// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/nn/loss/expect_same_lengths.hpp>
#include <lockstep/train/metrics/detail/each_label.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Options of metrics of real numbers.
struct RegressionOptions {
  Index output = -1;      ///< the output that counts, from 0; -1: all of them
  double unit = 1;        ///< multiplies the error: the deviation by which the targets were divided
  std::string name = {};  ///< name of the value in reports; empty: the metric's own
};

namespace detail {

/// Calls f(prediction, target, output) for each output of each row of a prediction on the host, or of each token of a
/// Sequence, without padding. Rows whose std::optional target is empty are left out.
/// @param output the only output to call f for, or -1 for all
/// @throws ShapeError, naming `metric`, if the number of targets differs from the number of predictions, or there is no
/// such output
template <class Prediction, class Column, class Function>
void each_target(char const* metric, Prediction const& prediction, Column const& targets, Index output,
                 Function const& f) {
  constexpr bool has_outputs = HasLogits<Prediction>, has_numbers = requires { targets.values.data; };
  static_assert(
      has_outputs,
      "Lockstep: this metric reads numbers: predict returns a Variable or a Sequence. If it returns several in a "
      "struct, train::HeadMetric names one; see docs/reference/model.md");
  static_assert(
      has_numbers,
      "Lockstep: a metric's target is a number or numbers, and this member of the sample is text or a struct");
  if constexpr (has_outputs && has_numbers) {
    auto const expect_targets = [&](Index rows, Index width) {
      expect<ShapeError>(targets.values.size() == rows * width, [&] {
        return std::string(metric) + ": the prediction is [" + std::to_string(rows) + ", " + std::to_string(width) +
               "] and the target " + to_string(targets.values.extent) +
               "; each element of the prediction needs one of the target";
      });
      expect<ShapeError>(output >= -1 && output < width, [&] {
        return std::string(metric) + ": RegressionOptions::output is " + std::to_string(output) +
               "; the model predicts the outputs 0 to " + std::to_string(width - 1) + ", and -1 names all";
      });
    };
    auto const one = [&](auto const& outputs, Index row) {
      if (!has_label(targets, row)) return;
      Index const width = outputs.extent(1);
      for (Index at = output < 0 ? 0 : output; at < (output < 0 ? width : output + 1); ++at)
        f(static_cast<double>(outputs.value.data[row * width + at]),
          static_cast<double>(targets.values.data[row * width + at]), at);
    };
    if constexpr (requires { prediction.layout; }) {
      auto const& layout = prediction.layout;
      nn::expect_same_lengths(metric, prediction, targets);
      expect_targets(layout.slots, prediction.tokens.extent(1));
      for (Index row = 0; row < layout.rows; ++row)
        for (Index slot = layout.start(row); slot < layout.start(row) + layout.tokens(row); ++slot)
          one(prediction.tokens, slot);
    } else {
      auto const each_row = [&](auto const& rows) {
        expect_targets(rows.extent(0), rows.extent(1));
        for (Index row = 0; row < rows.extent(0); ++row) one(rows, row);
      };
      if constexpr (requires { prediction.as_rows(); })
        each_row(prediction.as_rows());
      else
        each_row(prediction);
    }
  }
}

}  // namespace detail
}}}  // namespace lockstep::train
