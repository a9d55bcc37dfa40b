// SPDX-License-Identifier: Apache-2.0
// CASE pointer: Lockstep: this member of the sample cannot be collated
// CASE constructor: Lockstep: the sample is not an aggregate
#include <lockstep/data/columns.hpp>

struct Sample {
#if defined(CASE_constructor)
  Sample(int, int) {}
#endif
#if defined(CASE_pointer)
  float* x;
#else
  float x;
#endif
};

lockstep::data::Columns<Sample> batch;
