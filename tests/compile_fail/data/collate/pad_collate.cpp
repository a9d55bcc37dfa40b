// SPDX-License-Identifier: Apache-2.0
// CASE map: Lockstep: this member of the sample cannot be collated: it is none of number, enum, std::array
// CASE vector_of_bool: Lockstep: std::vector<bool> holds bits
// CASE pointer: Lockstep: this member of the sample cannot be collated
// CASE nested: Lockstep: this member of the sample cannot be collated
// CASE too_many: Lockstep: a sample is an aggregate of 1 to 32 members; group members in a nested struct
// CASE no_members: Lockstep: a sample is an aggregate of 1 to 32 members
// CASE no_aggregate: Lockstep: the sample is not an aggregate
#include <map>
#include <string>
#include <vector>

#include <lockstep/data/collate/pad_collate.hpp>

using namespace lockstep;

struct Inner {
  float x = 0;
#if defined(CASE_nested)
  std::vector<std::string> names;
#endif
};
struct Sample {
  std::vector<int> tokens;
  Inner inner;
#if defined(CASE_map)
  std::map<int, int> counts;
#elif defined(CASE_vector_of_bool)
  std::vector<bool> bits;
#elif defined(CASE_pointer)
  int const* pointer = nullptr;
#elif defined(CASE_too_many)
  int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2, b2, c2, d2, e2;
#elif defined(CASE_no_aggregate)
  explicit Sample(int) {}
#endif
};
struct Empty {};

#if defined(CASE_no_members)
data::Columns<Empty>* batch;
#else
data::Columns<Sample>* batch;
#endif
static_assert(sizeof(*batch) > 0);
