// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/combine/transform.hpp>

#include <string>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>
#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/detail/forwarding.hpp>
#include <lockstep/data/sample_extent.hpp>

using namespace lockstep;

namespace {
struct Grouped {
  Index size() const { return 4; }
  int get(Index i) const { return static_cast<int>(i); }
  Index groups() const { return 2; }
  Index group(Index i) const { return i / 2; }
};
}  // namespace

TEST_CASE("get applies the function to the sample; size and groups are the dataset's") {
  data::Transform const text{Grouped{}, [](int i) { return std::to_string(10 * i); }};
  CHECK(text.size() == 4);
  CHECK(text.get(3) == "30");
  CHECK(text.groups() == 2);
  CHECK(text.group(3) == 1);
  static_assert(data::Dataset<std::remove_const_t<decltype(text)>>);
  static_assert(!data::GroupedDataset<data::Transform<data::InMemoryDataset<int>, int (*)(int)>>);

  data::InMemoryDataset const kept{data::Transform{text, [](std::string const& s) { return s.size(); }}};
  CHECK(kept.get(0) == 1);
  CHECK(kept.get(2) == 2);
}

TEST_CASE("a part of a sample in memory is returned by reference") {
  struct Pair {
    std::string a, b;
  };
  data::InMemoryDataset const pairs{std::vector<Pair>{{"x", "y"}}};
  data::Transform const second{pairs, [](Pair const& pair) -> std::string const& { return pair.b; }};
  CHECK(&second.get(0) == &pairs.get(0).b);
}

TEST_CASE("a function that draws random numbers gets the loader's key, also through further functions") {
  auto const noise = [](int value, data::SampleKey const& key) {
    return static_cast<double>(value) + static_cast<double>(key.random("noise")(0)[0]) * 0x1p-32;
  };
  data::Transform const noisy{Grouped{}, noise};
  data::Transform const doubled{noisy, [](double x) { return 2 * x; }};
  static_assert(data::DrawsSamples<std::remove_const_t<decltype(noisy)>>);
  static_assert(data::DrawsSamples<std::remove_const_t<decltype(doubled)>>);
  static_assert(!data::DrawsSamples<data::Transform<Grouped, int (*)(int)>>);
  CHECK(noisy.get(3) == noisy.get(3, {0, 0, 3}));
  CHECK(noisy.get(3, {0, 1, 3}) != noisy.get(3));
  CHECK(doubled.get(2, {5, 6, 7}) == 2 * noisy.get(2, {5, 6, 7}));
}

TEST_CASE("extents of transformed samples are known if the function says them") {
  using Numbers = std::vector<int>;
  struct Sample {
    Numbers values;
  };
  struct Direct {
    Index size() const { return 5; }
    Sample get(Index i) const { return {Numbers(static_cast<std::size_t>(i))}; }
    data::SampleExtent<Sample> extent(Index i) const { return {{i}}; }
  };
  struct Unknown : Direct {
    void extent(Index) const = delete;
  };
  struct Twice {
    Sample operator()(Sample sample, data::SampleKey const&) const {
      sample.values.resize(2 * sample.values.size());
      return sample;
    }
    static data::SampleExtent<Sample> extent(data::SampleExtent<Sample> const& of) { return {{2 * of.lengths[0]}}; }
  };
  data::Transform const twice{Direct{}, Twice{}};
  for (Index i = 0; i < 5; ++i) CHECK(twice.extent(i) == data::extent_of(twice.get(i)));
  static_assert(data::detail::KnowsExtents<data::Transform<Direct, Twice>>);
  static_assert(!data::detail::KnowsExtents<data::Transform<Unknown, Twice>>);
  static_assert(!data::detail::KnowsExtents<data::Transform<Direct, Sample (*)(Sample)>>);
}
