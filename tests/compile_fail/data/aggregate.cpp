// SPDX-License-Identifier: Apache-2.0
// CASE c_array: Lockstep: a sample holds no C arrays
// NOT CLANG c_array
// CASE base: Lockstep: a sample has no base class
// CASE empty_base: Lockstep: a sample has no base class
#include <array>

#include <lockstep/data/aggregate.hpp>

struct Base {
#if defined(CASE_base)
  int id;
#endif
};

#if defined(CASE_base) || defined(CASE_empty_base)
struct Sample : Base {
#else
struct Sample {
#endif
#if defined(CASE_c_array)
  float at[2];
#else
  std::array<float, 2> at;
#endif
  int label;
};

auto label(Sample& sample) { return std::get<1>(lockstep::data::members(sample)); }
