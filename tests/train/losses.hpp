// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include <lockstep/train/logs/observer.hpp>

namespace lockstep_test {

/// Records the loss of each step.
struct Losses : lockstep::train::Observer {
  std::vector<double> values;
  void step(lockstep::train::StepReport const& report) override { values.push_back(report.loss); }
};

}  // namespace lockstep_test
