// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/combine/hold_out.hpp>

#include <algorithm>
#include <set>
#include <vector>

#include <doctest/doctest.h>
#include <lockstep/data/combine/zip.hpp>

using namespace lockstep;

namespace {

struct Numbers {
  Index count;
  Index size() const { return count; }
  Index get(Index i) const { return i; }
};
struct Grouped : Numbers {
  Index groups() const { return (count + 4) / 5; }
  Index group(Index i) const { return i / 5; }
};

template <class D>
std::vector<Index> all_of(data::Subset<D> const& subset) {
  std::vector<Index> out;
  for (Index i = 0; i < subset.size(); ++i) out.push_back(subset.get(i));
  return out;
}

}  // namespace

TEST_CASE("each sample is in one part, in order, and only the seed decides in which") {
  for (Index count : {2, 3, 10, 31, 32, 33, 1000}) {
    auto const parts = data::hold_out(Numbers{count}, 0.1, 7);
    auto const training = all_of(parts.training), evaluation = all_of(parts.evaluation);
    CHECK(parts.evaluation.size() == (count + 9) / 10);
    CHECK(std::is_sorted(training.begin(), training.end()));
    CHECK(std::is_sorted(evaluation.begin(), evaluation.end()));
    std::set<Index> both(training.begin(), training.end());
    both.insert(evaluation.begin(), evaluation.end());
    CHECK(static_cast<Index>(both.size()) == count);
    CHECK(static_cast<Index>(training.size() + evaluation.size()) == count);
    CHECK(all_of(data::hold_out(Numbers{count}, 0.1, 7).evaluation) == evaluation);
  }
  CHECK(all_of(data::hold_out(Numbers{1000}, 0.1, 7).evaluation) !=
        all_of(data::hold_out(Numbers{1000}, 0.1, 8).evaluation));
  CHECK(data::hold_out(Numbers{2}, 0.99, 0).training.size() == 1);
}

TEST_CASE("a group that the dataset does not have is refused") {
  struct Misnumbered : Numbers {
    Index wrong;
    Index groups() const { return 3; }
    Index group(Index i) const { return i == 4 ? wrong : i % 3; }
  };
  CHECK_THROWS_WITH_AS(data::hold_out(Misnumbered{{9}, 3}, 0.5, 1),
                       "hold_out: sample 4 is of group 3, and the dataset has 3; groups are numbered from 0",
                       DataError);
  CHECK_THROWS_WITH_AS(data::hold_out(Misnumbered{{9}, -1}, 0.5, 1), doctest::Contains("sample 4 is of group -1"),
                       DataError);
}

TEST_CASE("groups stay together") {
  auto const parts = data::hold_out(Grouped{{103}}, 0.25, 3);
  std::set<Index> training, evaluation;
  for (auto i : all_of(parts.training)) training.insert(i / 5);
  for (auto i : all_of(parts.evaluation)) evaluation.insert(i / 5);
  CHECK(evaluation.size() == 6);  // ceil(21 / 4)
  CHECK(training.size() == 15);
  for (auto group : evaluation) CHECK(training.count(group) == 0);
}

TEST_CASE("invalid splits are refused") {
  CHECK_THROWS_AS(static_cast<void>(data::hold_out(Numbers{1}, 0.1, 0)), DataError);
  CHECK_THROWS_AS(static_cast<void>(data::hold_out(Numbers{0}, 0.1, 0)), DataError);
  CHECK_THROWS_AS(static_cast<void>(data::hold_out(Grouped{{5}}, 0.1, 0)), DataError);
  CHECK_THROWS_AS(static_cast<void>(data::hold_out(Numbers{10}, 0, 0)), ConfigError);
  CHECK_THROWS_AS(static_cast<void>(data::hold_out(Numbers{10}, 1, 0)), ConfigError);
}

TEST_CASE("held-out groups can be split again: groups without samples do not count") {
  auto const first = data::hold_out(Grouped{{100}}, 0.25, 3);
  auto const second = data::hold_out(first.training, 0.25, 3);
  CHECK(first.evaluation.size() == 25);
  CHECK(second.evaluation.size() == 20);  // ceil(15 / 4) groups of the remaining 15
  CHECK(second.training.size() == 55);
}

TEST_CASE("groups stay together in zipped datasets, too") {
  auto const parts = data::hold_out(data::Zip{Numbers{100}, Grouped{{100}}}, 0.25, 3);
  std::set<Index> training, evaluation;
  for (Index i = 0; i < parts.training.size(); ++i) training.insert(parts.training.original(i) / 5);
  for (Index i = 0; i < parts.evaluation.size(); ++i) evaluation.insert(parts.evaluation.original(i) / 5);
  CHECK(evaluation.size() == 5);
  for (auto group : evaluation) CHECK(training.count(group) == 0);
}

TEST_CASE("a fraction of a whole number of samples holds out exactly that number") {
  for (Index percent = 1; percent < 100; ++percent)
    CHECK(data::hold_out(Numbers{100}, static_cast<double>(percent) / 100, 1).evaluation.size() == percent);
}

TEST_CASE("an equal fraction of each class is held out, and a class of one sample is trained on") {
  std::vector<std::int32_t> classes;
  for (int i = 0; i < 1000; ++i) classes.push_back(i % 100 == 7 ? 5 : i % 3);  // 10 of class 5
  classes[500] = 9;
  auto const parts = data::hold_out(Numbers{1000}, 0.2, 3, classes);
  auto const training = all_of(parts.training), evaluation = all_of(parts.evaluation);
  for (std::int32_t c : {0, 1, 2, 5, 9}) {
    auto const is_c = [&](Index i) { return classes[static_cast<std::size_t>(i)] == c; };
    auto const all = std::count(classes.begin(), classes.end(), c);
    auto const held = std::count_if(evaluation.begin(), evaluation.end(), is_c);
    CHECK(held == (all == 1 ? 0 : (all + 4) / 5));
    CHECK(std::count_if(training.begin(), training.end(), is_c) == all - held);
  }
  CHECK(std::is_sorted(evaluation.begin(), evaluation.end()));
  CHECK(all_of(data::hold_out(Numbers{1000}, 0.2, 3, classes).evaluation) == evaluation);
  CHECK(all_of(data::hold_out(Numbers{1000}, 0.2, 4, classes).evaluation) != evaluation);
}

TEST_CASE("classes that do not fit the samples are refused") {
  auto const part = [](std::vector<std::int32_t> const& classes, double fraction = 0.5) {
    static_cast<void>(data::hold_out(Numbers{3}, fraction, 0, classes));
  };
  CHECK_THROWS_WITH_AS(part({0, 0}), "hold_out: 2 classes for 3 samples; give the class of each sample", ConfigError);
  CHECK_THROWS_WITH_AS(part({0, -1, 0}), "hold_out: the class of sample 1 is -1; classes are numbered from 0",
                       ConfigError);
  CHECK_THROWS_AS(part({0, 1, 0}, 1), ConfigError);
  CHECK_THROWS_AS(part({0, 1, 2}), DataError);
}
