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

TEST_CASE("columns return the members of a row, without padding") {
  std::array<int, 6> const numbers{1, 2, 3, 4, 5, 6};
  std::array<bool, 2> const present{false, true};
  std::array<std::int32_t, 2> const lengths{2, 0};
  std::array<Index, 3> const offsets{0, 4, 4};
  CHECK(data::NumberColumn<int, HostSpace>{{numbers.data(), {6}}}[4] == 5);
  auto const second = data::ArrayColumn<int, 3, HostSpace>{{numbers.data(), {2, 3}}}[1];
  static_assert(second.size() == 3);
  CHECK(second[0] == 4);
  data::OptionalColumn<int, HostSpace> const optional{{numbers.data(), {2}}, {present.data(), {2}}};
  CHECK(!optional[0]);
  CHECK(optional[1] == 2);

  data::PaddedColumn<int, HostSpace> padded{{numbers.data(), {2, 3}}, {lengths.data(), {2}}};
  CHECK(padded[0].size() == 2);
  CHECK(padded[0][1] == 2);
  CHECK(padded[1].empty());
  padded.side = data::Side::start;
  CHECK(padded[0][0] == 2);
  CHECK(padded[0][1] == 3);
  data::RaggedColumn<int, HostSpace> const ragged{{numbers.data(), {4}}, {offsets.data(), {3}}, 4};
  CHECK(ragged[0].size() == 4);
  CHECK(ragged[0][3] == 4);
  CHECK(ragged[1].empty());
}
