// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/loader/fingerprint.hpp>

#include <cstdint>
#include <set>
#include <string>

#include <doctest/doctest.h>
#include <lockstep/data/sampler/sequential_sampler.hpp>
#include <lockstep/data/sampler/shuffled_sampler.hpp>

using namespace lockstep;

namespace {

struct Plain {
  Index count;
  Index size() const { return count; }
  int get(Index) const { return 0; }
};
struct Versioned : Plain {
  std::uint64_t version;
  std::uint64_t fingerprint() const { return version; }
};

}  // namespace

TEST_CASE("a fingerprint changes with length, sampler, seed and the dataset's own fingerprint") {
  std::set<std::string> seen;
  for (Index count : {0, 1, 31, 32, 33}) {
    auto const sequential = data::fingerprint(Plain{count}, data::SequentialSampler{}.over(Plain{count}));
    CHECK(sequential.size() == 16);
    CHECK(sequential == data::fingerprint(Plain{count}, data::SequentialSampler{}.over(Plain{count})));
    seen.insert(sequential);
  }
  CHECK(seen.size() == 5);
  for (std::uint64_t k = 0; k < 10; ++k) {
    seen.insert(data::fingerprint(Plain{33}, data::ShuffledSampler{.seed = k}.over(Plain{33})));
    seen.insert(data::fingerprint(Versioned{{33}, k}, data::SequentialSampler{}.over(Plain{33})));
  }
  CHECK(seen.size() == 25);
}

TEST_CASE("a fingerprint distinguishes datasets of one order by length, and orders by their later epochs") {
  data::SequentialSampler::Order const two(2);
  CHECK(data::fingerprint(Plain{2}, two) != data::fingerprint(Plain{3}, two));
  struct Later {
    Index shift;
    Index size() const { return 64; }
    auto in(Index epoch) const {
      return [by = epoch == 0 ? 0 : shift](Index position) { return (position + by) % 64; };
    }
  };
  CHECK(data::fingerprint(Plain{64}, Later{1}) != data::fingerprint(Plain{64}, Later{2}));
}

TEST_CASE("the fingerprint of an order changes with length, sampler and seed, not with the samples' values") {
  auto const of = [](auto const& dataset, auto const& sampler) {
    return data::order_fingerprint(dataset.size(), sampler.over(dataset));
  };
  CHECK(of(Versioned{{33}, 1}, data::ShuffledSampler{.seed = 1}) == of(Plain{33}, data::ShuffledSampler{.seed = 1}));
  CHECK(of(Plain{33}, data::ShuffledSampler{.seed = 2}) != of(Plain{33}, data::ShuffledSampler{.seed = 1}));
  CHECK(of(Plain{33}, data::SequentialSampler{}) != of(Plain{33}, data::ShuffledSampler{.seed = 1}));
  CHECK(of(Plain{32}, data::SequentialSampler{}) != of(Plain{33}, data::SequentialSampler{}));
}

TEST_CASE("the fingerprint of a dataset that draws random numbers changes with its seed") {
  struct Drawing : Plain {
    using Plain::get;
    int get(Index, data::SampleKey const&) const { return 0; }
  };
  auto const of = [](auto const& dataset, std::uint64_t seed) {
    return data::fingerprint(dataset, data::SequentialSampler{}.over(dataset), seed);
  };
  CHECK(of(Drawing{{9}}, 1) != of(Drawing{{9}}, 2));
  CHECK(of(Drawing{{9}}, 0) == of(Plain{9}, 0));
  CHECK(of(Plain{9}, 1) == of(Plain{9}, 2));
}
