// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/column.hpp>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

using namespace lockstep;

namespace {

enum class Colour : std::uint8_t { red };
struct Nested {
  int a = 0;
};

template <class Member>
using Of = data::ColumnOf<Member, HostSpace>;

static_assert(std::is_same_v<Of<float>, data::NumberColumn<float, HostSpace>>);
static_assert(std::is_same_v<Of<bool>, data::NumberColumn<bool, HostSpace>>);
static_assert(std::is_same_v<Of<Colour>, data::NumberColumn<Colour, HostSpace>>);
static_assert(std::is_same_v<Of<std::array<int, 3>>, data::ArrayColumn<int, 3, HostSpace>>);
static_assert(std::is_same_v<Of<std::optional<int>>, data::OptionalColumn<int, HostSpace>>);
static_assert(std::is_same_v<Of<std::vector<std::uint16_t>>, data::PaddedColumn<std::uint16_t, HostSpace>>);
static_assert(std::is_same_v<Of<std::vector<std::array<float, 2>>>, data::PaddedColumn<float, HostSpace, 2>>);
static_assert(std::is_same_v<Of<std::string>, data::TextColumn<HostSpace>>);
static_assert(std::is_same_v<Of<Nested>, data::Columns<Nested, HostSpace>>);
static_assert(std::is_same_v<data::ColumnOf<float, CudaSpace>, data::NumberColumn<float, CudaSpace>>);

static_assert(!data::Collatable<std::vector<bool>>);  // bits, not elements
static_assert(!data::Collatable<std::vector<std::string>>);
static_assert(!data::Collatable<std::vector<std::vector<int>>>);
static_assert(!data::Collatable<std::array<std::string, 2>>);
static_assert(!data::Collatable<std::map<int, int>>);
static_assert(!data::Collatable<int*>);

}  // namespace

TEST_CASE("a text column returns its texts") {
  std::string const characters = "onethree";
  std::array<Index, 4> const offsets{0, 3, 3, 8};
  data::TextColumn<HostSpace> const column{{characters.data(), {8}}, {offsets.data(), {4}}};
  CHECK(column[0] == "one");
  CHECK(column[1].empty());
  CHECK(column[2] == "three");
}
