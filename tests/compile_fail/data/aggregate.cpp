// SPDX-License-Identifier: Apache-2.0
// CASE c_array: Lockstep: a sample holds no C arrays
#include <array>

#include <lockstep/data/aggregate.hpp>

struct Sample {
#if defined(CASE_c_array)
  float at[2];
#else
  std::array<float, 2> at;
#endif
  int label;
};

auto label(Sample& sample) { return std::get<1>(lockstep::data::members(sample)); }
