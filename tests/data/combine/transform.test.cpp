// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/combine/transform.hpp>

#include <string>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>
#include <lockstep/data/collate/in_memory_dataset.hpp>

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
