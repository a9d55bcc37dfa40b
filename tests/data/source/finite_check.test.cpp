// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/source/finite_check.hpp>

#include <array>
#include <concepts>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <lockstep/data/collate/in_memory_dataset.hpp>

#include "data/read_by_workers.hpp"

using namespace lockstep;

namespace {

struct Inner {
  int whole = 0;
  double number = 0;
};
struct Sample {
  std::string text;
  float number = 0;
  std::vector<double> numbers;
  std::optional<float> perhaps;
  std::vector<std::array<float, 2>> pairs;
  Inner inner;
};
constexpr auto no_number = std::numeric_limits<float>::quiet_NaN();
constexpr auto infinity = std::numeric_limits<double>::infinity();

struct Named {
  Index size() const { return 1; }
  Sample get(Index, data::SampleKey const& key) const {
    Sample out;
    out.number = key.epoch > 0 ? no_number : 1;
    return out;
  }
  Sample get(Index i) const { return get(i, {}); }
  std::string name(Index) const { return "a.npy"; }
};

}  // namespace

TEST_CASE("non-finite numbers are found in members of every kind") {
  std::vector<Sample> samples(8, Sample{"", 1, {1, 2}, {}, {{{3, 4}}, {{5, 6}}}, {7, 8}});
  samples[1].number = -no_number;
  samples[2].numbers[1] = -infinity;
  samples[3].perhaps = no_number;
  samples[4].perhaps = std::numeric_limits<float>::max();
  samples[5].pairs[1][1] = no_number;
  samples[6].inner.number = infinity;
  data::FiniteCheck const dataset{data::InMemoryDataset{samples}};
  CHECK(std::same_as<decltype(dataset.get(0)), Sample const&>);  // in place
  CHECK(dataset.size() == 8);
  for (Index const fine : {0, 4, 7}) CHECK(dataset.get(fine).inner.whole == 7);
  auto const found = [&](Index i, char const* member) {
    CHECK_THROWS_WITH_AS(static_cast<void>(dataset.get(i)), doctest::Contains(member), DataError);
  };
  found(1, "member 1 holds");
  found(2, "member 2 holds");
  found(3, "member 3 holds");
  found(5, "member 4 holds");
  found(6, "member 5 holds");
}

TEST_CASE("drawn samples are checked too, and keep their names") {
  data::FiniteCheck const dataset{Named{}};
  CHECK(dataset.get(0, {0, 0, 0}).number == 1);
  CHECK_THROWS_WITH_AS(static_cast<void>(dataset.get(0, {0, 1, 0})), doctest::Contains("a.npy: member 1"), DataError);
  CHECK(dataset.name(0) == "a.npy");
}

TEST_CASE("samples from a worker's reader are checked too") {
  lockstep_test::ReadByWorkers const read{data::InMemoryDataset{std::vector<Inner>{{1, 1}, {2, infinity}}}};
  data::FiniteCheck const dataset{read};
  auto worker = dataset.worker();
  CHECK(worker.get(0).whole == 1);
  CHECK_THROWS_WITH_AS(static_cast<void>(worker.get(1)), doctest::Contains("member 1 holds"), DataError);
  CHECK(*read.read == 2);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
TEST_CASE("the former name checks samples, too") {
  data::Finite const dataset{Named{}};
  CHECK(dataset.get(0).number == 1);
  CHECK_THROWS_AS(static_cast<void>(dataset.get(0, {1, 1, 0})), DataError);
}
#pragma GCC diagnostic pop
