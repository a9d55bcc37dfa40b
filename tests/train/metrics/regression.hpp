// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <iterator>
#include <optional>
#include <vector>

#include <lockstep/core/tensor_view.hpp>
#include <lockstep/data/collate/collated.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/kernel/sequence_layout.hpp>
#include <lockstep/memory/space.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/autograd/variable.hpp>

/// Predictions with the targets of scikit-learn's examples, the inputs of metrics of real numbers.
namespace regression {
using namespace lockstep;

struct Run {
  float one;
  std::array<float, 2> two;
  std::optional<float> maybe;
  std::vector<float> each;  // one target for each step
};

inline std::vector<Run> one_output() { return {{3, {}, 3, {}}, {-0.5f, {}, {}, {}}, {2, {}, 2, {}}, {7, {}, 7, {}}}; }
inline std::vector<Run> two_outputs() { return {{0, {0.5f, 1}, 0, {}}, {0, {-1, 1}, 0, {}}, {0, {7, -6}, 0, {}}}; }

/// Adds a batch with these predictions, row by row.
inline void add(auto& metric, std::vector<Run> const& runs, std::vector<float> predictions) {
  data::Collated const batch{data::PadCollate{}, runs};
  Index const rows = std::ssize(runs);
  metric.add(nn::Variable<float, 2, HostSpace>{{predictions.data(), {rows, std::ssize(predictions) / rows}}, nullptr},
             batch.batch());
}

/// Adds two sequences of two tokens and one, whose predictions are each 1 too large, with padding that is not.
inline void add_sequences(auto& metric) {
  data::Collated const batch{data::PadCollate{}, std::vector<Run>{{0, {}, {}, {1, 5}}, {0, {}, {}, {2}}}};
  std::vector<float> predictions{2, 6, 3, 100};
  std::vector<std::int32_t> const lengths{2, 1};
  auto const layout = kernel::SequenceLayout<HostSpace>::padded(2, {lengths.data(), {2}}, batch.batch().positions());
  metric.add(nn::Sequence<float, HostSpace>{{{predictions.data(), {4, 1}}, nullptr}, layout}, batch.batch());
}

}  // namespace regression
