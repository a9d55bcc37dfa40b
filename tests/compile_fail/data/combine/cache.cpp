// SPDX-License-Identifier: Apache-2.0
// CASE draws: Lockstep: Cache would keep one draw of each sample of a dataset that draws random numbers
#include <lockstep/data/combine/cache.hpp>

using namespace lockstep;

struct Numbers {
  Index size() const { return 3; }
  int get(Index i) const { return static_cast<int>(i); }
#if defined(CASE_draws)
  int get(Index i, data::SampleKey const&) const { return get(i); }
#endif
};

static_assert(sizeof(data::Cache<Numbers>) > 0);
