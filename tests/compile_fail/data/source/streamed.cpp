// SPDX-License-Identifier: Apache-2.0
// CASE shuffled: Lockstep: a stream has its own sample order; its sampler is SequentialSampler
// CASE subset: Lockstep: Subset and hold_out choose among samples, but a stream
// CASE concat: Lockstep: Concat finds samples by number, but a stream
// CASE with_groups: Lockstep: WithGroups assigns samples by number, but a stream
// CASE without_zstd: Lockstep: unpack_mds decompresses with zstd: link the target lockstep::zstd
#include <optional>
#include <string>
#include <vector>

#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/combine/concat.hpp>
#include <lockstep/data/combine/subset.hpp>
#include <lockstep/data/combine/with_groups.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/sequential_sampler.hpp>
#include <lockstep/data/sampler/shuffled_sampler.hpp>
#include <lockstep/data/source/streamed.hpp>
#include <lockstep/data/source/unpack_mds.hpp>

using namespace lockstep;

struct Sample {
  float x;
};
struct Endless {
  struct Lane {
    std::optional<Sample> next() { return Sample{}; }
  };
  Index lanes() const { return 1; }
  Lane lane(Index, Index) const { return {}; }
};

#if defined(CASE_shuffled)
using Sampler = data::ShuffledSampler;
#else
using Sampler = data::SequentialSampler;
#endif

data::DataLoader<data::Streamed<Endless>, Sampler, data::PadCollate> make() {
  return {data::Streamed{Endless{}}, Sampler{}, data::PadCollate{}};
}
#if defined(CASE_subset)
data::Subset const some{data::Streamed{Endless{}}, {0}};
#endif
#if defined(CASE_concat)
data::Concat const both{data::Streamed{Endless{}}, data::Streamed{Endless{}}};
#endif
#if defined(CASE_with_groups)
data::WithGroups const grouped{data::Streamed{Endless{}}, std::vector<int>{}};
#endif
#if defined(CASE_without_zstd)
std::string unpacked() { return data::unpack_mds("shards"); }
#endif
