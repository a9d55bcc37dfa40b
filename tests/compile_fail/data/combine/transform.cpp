// SPDX-License-Identifier: Apache-2.0
// CASE other_argument: Lockstep: the function of Transform cannot be called, as const, with a sample of the dataset
#include <string>

#include <lockstep/data/combine/transform.hpp>

using namespace lockstep;

struct Numbers {
  Index size() const { return 3; }
#if defined(CASE_other_argument)
  std::string get(Index) const { return ""; }
#else
  int get(Index i) const { return static_cast<int>(i); }
#endif
};
struct Twice {
  int operator()(int x) const { return 2 * x; }
};

using Doubled = data::Transform<Numbers, Twice>;
static_assert(sizeof(Doubled) > 0);
