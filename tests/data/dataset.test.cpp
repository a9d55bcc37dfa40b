// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/dataset.hpp>

#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

using namespace lockstep;

namespace {

struct ByValue {
  Index size() const { return 1; }
  int get(Index) const { return 4; }
};
struct ByReference : ByValue {
  std::vector<int> value{1, 2};
  std::vector<int> const& get(Index) const { return value; }
};
struct Grouped : ByValue {
  Index groups() const { return 1; }
  Index group(Index) const { return 0; }
};
struct NotConst {
  Index size() { return 1; }
  int get(Index) { return 4; }
};
struct WithoutSize {
  int get(Index) const { return 4; }
};
struct GivesNothing {
  Index size() const { return 1; }
  void get(Index) const {}
};

static_assert(data::Dataset<ByValue> && data::Dataset<ByReference>);
static_assert(!data::Dataset<NotConst> && !data::Dataset<WithoutSize> && !data::Dataset<GivesNothing> &&
              !data::Dataset<int>);
static_assert(data::GroupedDataset<Grouped> && !data::GroupedDataset<ByValue>);
static_assert(std::is_same_v<data::SampleOf<ByReference>, std::vector<int>>);

}  // namespace

TEST_CASE("a sample's type is not a reference") {
  data::SampleOf<ByReference> const sample = ByReference{}.get(0);
  CHECK(sample.size() == 2);
}
