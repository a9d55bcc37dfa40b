// SPDX-License-Identifier: Apache-2.0
// CASE channel_left_out: Lockstep: this member of the sample has several channels, each with a mean and a deviation
#include <array>

#include <lockstep/data/combine/standard_scaler.hpp>

using namespace lockstep;

struct Run {
  std::array<float, 2> setup;
  float energy;
};

double in_own_unit(data::StandardScaler<Run, std::array<float, 2>, float> const& scale, double predicted) {
#if defined(CASE_channel_left_out)
  return scale.unscaled(predicted, &Run::setup);
#else
  return scale.unscaled(predicted, &Run::setup, 1) / scale.deviation(&Run::energy);
#endif
}
