// SPDX-License-Identifier: Apache-2.0
// CASE no_dataset: Lockstep: the first argument of DataLoader is no dataset: it needs size() and get(i)
// CASE no_sampler: Lockstep: the second argument of DataLoader is no sampler for this dataset
// CASE no_collate: Lockstep: the third argument of DataLoader is no collate for this dataset
// CASE vector: Lockstep: the first argument of DataLoader is no dataset
// CASE order: Lockstep: the first argument of DataLoader is no dataset
// CASE only_dataset: Lockstep: the second argument of DataLoader is no sampler for this dataset
// CASE without_collate: Lockstep: DataLoader takes a collate before the options: data::PadCollate{}
// CASE number: Lockstep: the fourth argument of DataLoader is a number, and should be options in braces
// CASE member: Lockstep: this member of the sample cannot be collated
// CASE batches: Lockstep: the sampler's order lacks some functions of an order by batches
// LINES 15
#include <string>
#include <vector>

#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/sequential_sampler.hpp>

using namespace lockstep;

struct Sample {
  float x;
#if defined(CASE_member)
  std::vector<std::string> names;
#endif
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
#elif defined(CASE_batches)
struct Sampler {
  struct Order : data::SequentialSampler::Order {
    Order() : data::SequentialSampler::Order(3) {}
    Index samples() const { return 3; }
    Index batches() const { return 1; }
    Index max_rows() const { return 3; }
    Index rows(Index) const { return 3; }  // without an epoch
  };
  Order over(Dataset const&) const { return {}; }
};
#else
using Sampler = data::SequentialSampler;
#endif

#if defined(CASE_no_collate)
struct Collate {};
#else
using Collate = data::PadCollate;
#endif

auto rows() {
#if defined(CASE_vector)
  data::DataLoader loader{std::vector<Sample>(3), Sampler{}, Collate{}, {.batch_size = 2}};
#elif defined(CASE_order)
  data::DataLoader loader{Sampler{}, Dataset{}, Collate{}, {.batch_size = 2}};
#elif defined(CASE_only_dataset)
  data::DataLoader loader{Dataset{}, {.batch_size = 2}};
#elif defined(CASE_without_collate)
  data::DataLoader loader{Dataset{}, Sampler{}, {.batch_size = 2}};
#elif defined(CASE_number)
  data::DataLoader loader{Dataset{}, Sampler{}, Collate{}, 2};
#else
  data::DataLoader loader{Dataset{}, Sampler{}, Collate{}, {.batch_size = 2}};
#endif
  return sizeof(loader);
}
