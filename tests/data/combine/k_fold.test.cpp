// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/combine/k_fold.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <lockstep/data/combine/with_groups.hpp>

using namespace lockstep;

namespace {

struct Numbers {
  Index count;
  Index size() const { return count; }
  Index get(Index i) const { return i; }
};

template <class D>
std::vector<Index> all_of(data::Subset<D> const& subset) {
  std::vector<Index> out;
  for (Index i = 0; i < subset.size(); ++i) out.push_back(subset.get(i));
  return out;
}

template <class D>
std::vector<std::vector<Index>> parts_of(std::vector<data::HeldOut<D>> const& folds) {
  std::vector<std::vector<Index>> out;
  for (auto const& fold : folds) out.push_back(all_of(fold.evaluation));
  return out;
}

}  // namespace

TEST_CASE("each sample is evaluated in one fold and trained on in all others, and only the seed decides in which") {
  for (Index count : {3, 10, 31, 32, 33, 1000}) {
    auto const folds = data::k_fold(Numbers{count}, 3, 7);
    REQUIRE(folds.size() == 3);
    std::vector<int> evaluated(static_cast<std::size_t>(count)), trained(evaluated);
    for (auto const& fold : folds) {
      auto const training = all_of(fold.training), evaluation = all_of(fold.evaluation);
      CHECK(std::is_sorted(training.begin(), training.end()));
      CHECK(std::is_sorted(evaluation.begin(), evaluation.end()));
      for (auto const i : evaluation) ++evaluated[static_cast<std::size_t>(i)];
      for (auto const i : training) ++trained[static_cast<std::size_t>(i)];
      CHECK(std::ssize(evaluation) >= count / 3);
      CHECK(std::ssize(evaluation) <= (count + 2) / 3);
    }
    CHECK(std::count(evaluated.begin(), evaluated.end(), 1) == count);
    CHECK(std::count(trained.begin(), trained.end(), 2) == count);
  }
  CHECK(parts_of(data::k_fold(Numbers{100}, 4, 7)) == parts_of(data::k_fold(Numbers{100}, 4, 7)));
  CHECK(parts_of(data::k_fold(Numbers{100}, 4, 7)) != parts_of(data::k_fold(Numbers{100}, 4, 8)));
}

TEST_CASE("as many folds as samples leave one out") {
  for (auto const& part : parts_of(data::k_fold(Numbers{5}, 5, 1))) CHECK(part.size() == 1);
}

TEST_CASE("folds have equal shares of each class, and equal sizes") {
  std::vector<std::int32_t> classes;
  for (int i = 0; i < 1000; ++i) classes.push_back(i % 100 == 7 ? 900 : i % 3);  // 10 of class 900
  for (auto const& part : parts_of(data::k_fold(Numbers{1000}, 4, 3, classes))) {
    CHECK(part.size() == 250);
    for (std::int32_t c : {0, 1, 2, 900}) {
      auto const all = std::count(classes.begin(), classes.end(), c);
      auto const here =
          std::count_if(part.begin(), part.end(), [&](Index i) { return classes[static_cast<std::size_t>(i)] == c; });
      CHECK(here >= all / 4);
      CHECK(here <= (all + 3) / 4);
    }
  }
}

TEST_CASE("a group is in one fold, and folds of unequal groups have similar sizes") {
  std::vector<std::string> speakers;  // 1 to 12 recordings of each
  for (int speaker = 1; speaker <= 12; ++speaker)
    speakers.insert(speakers.end(), static_cast<std::size_t>(speaker), "speaker " + std::to_string(speaker));
  data::WithGroups const recordings{Numbers{78}, speakers};
  std::set<std::string> seen;
  std::size_t total = 0;
  for (auto const& part : parts_of(data::k_fold(recordings, 3, 5))) {
    CHECK(part.size() == 26);
    std::set<std::string> own;
    for (auto const i : part) own.insert(speakers[static_cast<std::size_t>(i)]);
    total += own.size();
    seen.insert(own.begin(), own.end());
  }
  CHECK(seen.size() == 12);
  CHECK(total == 12);
}

TEST_CASE("groups with rare classes are spread over the folds") {
  std::vector<int> speakers;
  std::vector<std::int32_t> classes;
  for (int speaker = 0; speaker < 12; ++speaker)
    for (int i = 0; i < 10; ++i) {
      speakers.push_back(speaker);
      classes.push_back(speaker % 4 == 1 && i < 2 ? 1 : 0);  // 3 speakers say it twice
    }
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    for (auto const& part : parts_of(data::k_fold(data::WithGroups{Numbers{120}, speakers}, 3, seed, classes))) {
      CHECK(part.size() == 40);
      CHECK(std::count_if(part.begin(), part.end(),
                          [&](Index i) { return classes[static_cast<std::size_t>(i)] == 1; }) == 2);
    }
}

TEST_CASE("a fold can be divided again by group") {
  std::vector<int> speakers;
  for (int i = 0; i < 100; ++i) speakers.push_back(i % 10);
  for (auto const& fold : data::k_fold(data::WithGroups{Numbers{100}, speakers}, 5, 2)) {
    auto const inner = data::hold_out(fold.training, 0.25, 1);
    CHECK(inner.training.size() == 60);
    CHECK(inner.evaluation.size() == 20);
    CHECK(data::k_fold(fold.training, 4, 1)[3].evaluation.size() == 20);
  }
}

TEST_CASE("invalid folds are refused") {
  auto const divide = [](auto const& dataset, Index folds, std::vector<std::int32_t> const& classes = {}) {
    static_cast<void>(data::k_fold(dataset, folds, 0, classes));
  };
  CHECK_THROWS_WITH_AS(divide(Numbers{9}, 1), "k_fold: the number of folds is 1; it must be at least 2", ConfigError);
  CHECK_THROWS_WITH_AS(divide(Numbers{3}, 4),
                       "k_fold: 3 samples cannot be divided into 4 folds; choose fewer folds, or give more data",
                       DataError);
  CHECK_THROWS_WITH_AS(divide(data::WithGroups{Numbers{9}, std::vector<int>(9)}, 2),
                       doctest::Contains("k_fold: 1 group cannot be divided into 2 folds"), DataError);
  CHECK_THROWS_WITH_AS(divide(Numbers{3}, 2, {0, 0}), "k_fold: 2 classes for 3 samples; give the class of each sample",
                       ConfigError);
  CHECK_THROWS_AS(divide(Numbers{2}, 2, {0, -1}), ConfigError);
}
