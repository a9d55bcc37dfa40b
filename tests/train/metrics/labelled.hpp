// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <iterator>
#include <vector>

#include <lockstep/core/tensor_view.hpp>
#include <lockstep/memory/space.hpp>

namespace lockstep_test {

struct Labelled {
  int label;
};
/// Labelled predictions of a batch, the inputs of metrics.
struct LabelBatch {
  std::vector<int> labels;
  struct Column {
    lockstep::TensorView<int const, 1, lockstep::HostSpace> values;
  };
  Column operator[](int Labelled::*) const { return {{labels.data(), {std::ssize(labels)}}}; }
};

}  // namespace lockstep_test
