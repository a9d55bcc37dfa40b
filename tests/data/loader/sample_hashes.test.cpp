// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/loader/sample_hashes.hpp>

#include <atomic>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <lockstep/data/collate/in_memory_dataset.hpp>

using namespace lockstep;

namespace {

struct Sample {
  float value;
  int label;
  std::vector<float> series;
  std::string text;
};

/// Makes samples as `change(sample, i)` leaves them.
template <class Change>
struct Made {
  Index count;
  Change change;
  Index size() const { return count; }
  Sample get(Index i) const {
    Sample out{static_cast<float>(i), static_cast<int>(i), std::vector<float>(3), "t"};
    change(out, i);
    return out;
  }
};
template <class Change>
Made(Index, Change) -> Made<Change>;

std::vector<Index> indices_of(Index size) {
  std::vector<Index> out;
  for (auto const& each : data::sample_hashes(Made{size, [](Sample&, Index) {}})) out.push_back(each.index);
  return out;
}

}  // namespace

TEST_CASE("hashes belong to at most 8 samples, with the first and the last") {
  CHECK(indices_of(0).empty());
  CHECK(indices_of(1) == std::vector<Index>{0});
  CHECK(indices_of(2) == std::vector<Index>{0, 1});
  CHECK(indices_of(8) == std::vector<Index>{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(indices_of(9) == std::vector<Index>{0, 1, 2, 3, 4, 5, 6, 8});
  CHECK(indices_of(1'000'001) == std::vector<Index>{0, 142857, 285714, 428571, 571428, 714285, 857142, 1'000'000});
}

TEST_CASE("a sample that get makes is compared by its integers, strings and lengths") {
  auto const plain = data::sample_hashes(Made{20, [](Sample&, Index) {}});
  REQUIRE(plain.size() == 8);
  auto const differs = [&](auto change) { return data::sample_hashes(Made{20, change}) != plain; };
  CHECK_FALSE(differs([](Sample&, Index) {}));
  CHECK(differs([](Sample& sample, Index i) { sample.label = static_cast<int>(19 - i); }));
  CHECK(differs([](Sample& sample, Index i) { sample.series.resize(static_cast<std::size_t>(i)); }));
  CHECK(differs([](Sample& sample, Index i) { sample.text = std::to_string(i); }));
  // Decoders round differently.
  CHECK_FALSE(differs([](Sample& sample, Index) { sample.value += 0.5f; }));
  CHECK_FALSE(differs([](Sample& sample, Index) { sample.series[1] = 0.5f; }));
}

TEST_CASE("a sample that get returns by reference is compared by all of its bytes") {
  std::vector<Sample> samples(20, Sample{1, 1, {1, 2}, "t"});
  auto const plain = data::sample_hashes(data::InMemoryDataset(samples));
  samples[0].series[1] = 3;
  samples[19].value = 2;
  auto const changed = data::sample_hashes(data::InMemoryDataset(samples));
  REQUIRE(changed.size() == 8);
  for (std::size_t i = 0; i < 8; ++i) CHECK((changed[i] == plain[i]) == (i != 0 && i != 7));
}

TEST_CASE("samples that change from one read to the next are not compared") {
  std::atomic<int> reads = 0;
  CHECK(data::sample_hashes(Made{20, [&](Sample& sample, Index) { sample.label = ++reads; }}).empty());
}

TEST_CASE("samples in memory are read once, and others twice") {
  struct Counted {
    std::atomic<int>& reads;
    Sample sample{};
    Index size() const { return 20; }
    Sample const& get(Index) const noexcept { return ++reads, sample; }
  };
  std::atomic<int> held = 0, made = 0;
  CHECK(data::sample_hashes(Counted{held}).size() == 8);
  CHECK(held == 8);
  CHECK(data::sample_hashes(Made{20, [&](Sample&, Index) { ++made; }}).size() == 8);
  CHECK(made == 16);
}

TEST_CASE("an unreadable sample and all others keep their places") {
  auto const hashes = data::sample_hashes(Made{8, [](Sample&, Index i) {
                                                 if (i == 3) throw std::runtime_error("the file is damaged");
                                               }});
  REQUIRE(hashes.size() == 8);
  for (auto const& each : hashes) CHECK((each.content == "unreadable") == (each.index == 3));
}

TEST_CASE("names count without their folders, also for samples whose bytes cannot be compared") {
  struct Views {
    std::string folder;
    bool reversed = false;
    Index size() const { return 4; }
    std::string_view get(Index) const { return "x"; }
    std::string name(Index i) const { return folder + std::to_string(reversed ? 3 - i : i) + ".csv"; }
  };
  auto const here = data::sample_hashes(Views{"/data/a/"});
  REQUIRE(here.size() == 4);
  CHECK(here[2].content.starts_with("2.csv "));
  CHECK(data::sample_hashes(Views{"/mnt/b/"}) == here);
  CHECK(data::sample_hashes(Views{""}) == here);
  CHECK(data::sample_hashes(Views{"/data/a/", true}) != here);
}
