// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/subset.hpp>

#include <type_traits>
#include <vector>

#include <doctest/doctest.h>
#include <lockstep/data/in_memory_dataset.hpp>

using namespace lockstep;

namespace {
struct Grouped {
  Index size() const { return 6; }
  int get(Index i) const { return static_cast<int>(10 * i); }
  Index groups() const { return 3; }
  Index group(Index i) const { return i / 2; }
};
}  // namespace

TEST_CASE("a subset shows the chosen samples in the order given") {
  data::Subset const some{Grouped{}, {5, 0, 0, 3}};
  CHECK(some.size() == 4);
  CHECK(some.get(0) == 50);
  CHECK(some.get(2) == 0);
  CHECK(some.original(3) == 3);
  CHECK(some.groups() == 3);
  CHECK(some.group(0) == 2);
  CHECK(data::Subset{Grouped{}, {}}.size() == 0);
}

TEST_CASE("a subset of held samples gives references") {
  data::InMemoryDataset const all{std::vector<int>{1, 2, 3}};
  data::Subset const last{all, {2}};
  CHECK(&last.get(0) == &all.get(2));
}
