// SPDX-License-Identifier: Apache-2.0
// CASE no_dataset: Lockstep: the first argument of DataLoader is no dataset: it needs size() and get(i)
// CASE no_sampler: Lockstep: the second argument of DataLoader is no sampler for this dataset
// CASE no_collate: Lockstep: the third argument of DataLoader is no collate for this dataset
#include <lockstep/data/data_loader.hpp>
#include <lockstep/data/pad_collate.hpp>
#include <lockstep/data/sequential_sampler.hpp>

using namespace lockstep;

struct Sample {
  float x;
};

struct Dataset {
  Index size() const { return 3; }
#if defined(CASE_no_dataset)
  Sample get(Index) { return {}; }  // not const
#else
  Sample get(Index) const { return {}; }
#endif
};

#if defined(CASE_no_sampler)
struct Sampler {};
#else
using Sampler = data::SequentialSampler;
#endif

#if defined(CASE_no_collate)
struct Collate {};
#else
using Collate = data::PadCollate;
#endif

data::DataLoader<Dataset, Sampler, Collate> make() { return {Dataset{}, Sampler{}, Collate{}}; }
