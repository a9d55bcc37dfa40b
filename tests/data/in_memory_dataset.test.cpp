// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/in_memory_dataset.hpp>

#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

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

TEST_CASE("a vector's samples are held, given by reference, and shared by copies") {
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

TEST_CASE("a sample that cannot be read is the constructor's error") {
  int reads = 0;
  CHECK_THROWS_AS((data::InMemoryDataset{Squares{41, &reads}}), std::runtime_error);
}
