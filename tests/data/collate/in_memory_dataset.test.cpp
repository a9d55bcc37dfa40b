// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/collate/in_memory_dataset.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>
#include <lockstep/core/error.hpp>

using namespace lockstep;

namespace {

struct Squares {
  Index count;
  int* reads;
  Index size() const { return count; }
  std::string get(Index i) const {
    if (i == 40) throw std::runtime_error("broken");
    ++*reads;
    return std::to_string(i * i);
  }
};

}  // namespace

TEST_CASE("samples of a vector are in memory, returned by reference and shared by copies") {
  for (std::size_t size : {0u, 1u, 33u}) {
    data::InMemoryDataset const dataset{std::vector<std::string>(size, "x")};
    CHECK(dataset.size() == static_cast<Index>(size));
    auto const copy = dataset;
    static_assert(std::is_lvalue_reference_v<decltype(copy.get(0))>);
    if (size > 0) CHECK(&copy.get(0) == &dataset.get(0));
  }
}

TEST_CASE("another dataset is read once, in order") {
  int reads = 0;
  data::InMemoryDataset const dataset{Squares{33, &reads}};
  CHECK(reads == 33);
  for (Index i = 0; i < 33; ++i) CHECK(dataset.get(i) == std::to_string(i * i));
  CHECK(reads == 33);
}

TEST_CASE("a sample that cannot be made makes the constructor throw, by its name") {
  int reads = 0;
  CHECK_THROWS_WITH_AS((data::InMemoryDataset{Squares{41, &reads}}),
                       "InMemoryDataset: sample 40 cannot be made: broken", DataError);
}

TEST_CASE("the fingerprint changes with each value, length and place, for any sample type") {
  enum class Kind : char { a, b };
  struct Inner {
    std::array<float, 2> at{};
    Kind kind{};
  };
  struct Sample {
    std::vector<std::int32_t> ids;
    std::vector<std::array<float, 2>> points;
    std::vector<std::string> words;
    std::vector<bool> bits;
    std::optional<double> weight;
    std::string text;
    Inner inner;
    std::array<std::string, 2> names;
  };
  Sample const sample{{1, 2}, {{1, 2}}, {"a", "b"}, {true, false}, 0.5, "text", {{3, 4}, Kind::a}, {"x", "y"}};
  auto const print = [](std::vector<Sample> const& samples) { return data::InMemoryDataset(samples).fingerprint(); };
  std::set<std::uint64_t> seen{print({}), print({sample}), print({sample, sample}), print({{}})};
  auto const changed = [&](auto&& change) {
    auto other = sample;
    change(other);
    seen.insert(print({other}));
    seen.insert(print({other, sample}));
    seen.insert(print({sample, other}));
  };
  changed([](Sample& s) { s.ids[1] = 3; });
  changed([](Sample& s) { s.ids.push_back(0); });
  changed([](Sample& s) { s.points[0][1] = -2; });
  changed([](Sample& s) { s.words = {"ab", ""}; });
  changed([](Sample& s) { s.words = {"a", "b", ""}; });
  changed([](Sample& s) { s.bits[1] = true; });
  changed([](Sample& s) { s.bits.push_back(false); });
  changed([](Sample& s) { s.weight = 0; });
  changed([](Sample& s) { s.weight.reset(); });
  changed([](Sample& s) { s.text[3] = 'T'; });
  changed([](Sample& s) { s.inner.at[1] = 5; });
  changed([](Sample& s) { s.inner.kind = Kind::b; });
  changed([](Sample& s) { s.names = {"xy", ""}; });
  CHECK(seen.size() == 4 + 13 * 3);
  CHECK(print({sample}) == print({sample}));
}

TEST_CASE("the fingerprint changes with the order of equal words, and with trailing zeros") {
  using Bytes = std::vector<std::uint8_t>;
  auto const print = [](Bytes const& bytes) { return data::InMemoryDataset(std::vector{bytes}).fingerprint(); };
  Bytes words(16, 1), swapped(16, 2);
  std::fill_n(words.begin(), 8, std::uint8_t{2});
  std::fill_n(swapped.begin(), 8, std::uint8_t{1});
  CHECK(print(words) != print(swapped));
  CHECK(print({1}) != print({1, 0}));
}

TEST_CASE("sample types whose bytes cannot all be read have only a user-defined fingerprint") {
  struct Box {
    float corners[4];
  };
  struct Boxes {
    std::vector<Box> all;
  };
  struct Link {
    int* to;
  };
  static_assert(!data::HasFingerprint<data::InMemoryDataset<Boxes>>);
  static_assert(!data::HasFingerprint<data::InMemoryDataset<Link>>);
  static_assert(!data::HasFingerprint<data::InMemoryDataset<long double>>);
  struct Versioned : data::InMemoryDataset<Boxes> {
    using InMemoryDataset::InMemoryDataset;
    std::uint64_t fingerprint() const { return 17; }
  };
  static_assert(data::HasFingerprint<Versioned>);
  CHECK(Versioned{std::vector<Boxes>(2)}.fingerprint() == 17);
}
