// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/autograd/layout_of.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstdint>

using namespace lockstep;

namespace {
enum class Side { end, start };
struct Padded {
  TensorView<float const, 3, HostSpace> values;
  TensorView<std::int32_t const, 1, HostSpace> lengths;
  Side side = Side::end;
};
struct Ragged {
  TensorView<std::int32_t const, 1, HostSpace> values;
  TensorView<Index const, 1, HostSpace> offsets;
  Index longest = 0;
};
struct Single {
  TensorView<std::int32_t const, 1, HostSpace> values;
};
struct Fixed {
  TensorView<std::int32_t const, 2, HostSpace> values;
};
struct Optional : Single {
  TensorView<bool const, 1, HostSpace> present;
};
static_assert(nn::SequenceColumn<Single, HostSpace> && !nn::SequenceColumn<Optional, HostSpace>);
static_assert(!nn::SingleElements<Padded> && !nn::SingleElements<Ragged>);
static_assert(nn::SequenceColumn<Padded, HostSpace> && nn::SequenceColumn<Ragged, HostSpace>);
static_assert(nn::FixedSequences<Fixed> && !nn::SequenceColumn<Fixed, HostSpace>);
static_assert(!nn::FixedSequences<Padded> && !nn::FixedSequences<Single> && !nn::FixedSequences<Ragged>);
static_assert(!nn::SequenceColumn<TensorView<float, 2, HostSpace>, HostSpace>);

std::array<Index, 3> const places{4, 5, 6};
TensorView<Index const, 1, HostSpace> const positions{places.data(), {3}};
}  // namespace

TEST_CASE("a padded column has a padded layout") {
  std::array<std::int32_t, 3> const lengths{2, 0, 4};
  Padded const column{{nullptr, {3, 4, 7}}, {lengths.data(), {3}}};
  auto const layout = nn::layout_of<HostSpace>(column, positions);
  CHECK_FALSE(layout.is_ragged());
  CHECK(layout.slots == 12);
  CHECK(layout.tokens(2) == 4);
  CHECK(layout.positions.data == places.data());
}

TEST_CASE("a ragged column has a ragged layout") {
  std::array<Index, 4> const offsets{0, 2, 2, 6};
  Ragged const column{{nullptr, {6}}, {offsets.data(), {4}}, 4};
  auto const layout = nn::layout_of<HostSpace>(column, positions);
  CHECK(layout.is_ragged());
  CHECK(layout.slots == 6);
  CHECK(layout.length == 4);
  CHECK(layout.tokens(1) == 0);
}

TEST_CASE("a column of single numbers has one token per sample") {
  auto const layout = nn::layout_of<HostSpace>(Single{{nullptr, {3}}}, positions);
  CHECK_FALSE(layout.is_ragged());
  CHECK(layout.slots == 3);
  CHECK(layout.length == 1);
  CHECK(layout.tokens(2) == 1);
  CHECK(layout.positions.data == places.data());
}

TEST_CASE("a column of arrays has as many tokens for each sample") {
  auto const layout = nn::layout_of<HostSpace>(Fixed{{nullptr, {3, 4}}}, positions);
  CHECK_FALSE(layout.is_ragged());
  CHECK(layout.slots == 12);
  CHECK(layout.length == 4);
  CHECK(layout.tokens(2) == 4);
  CHECK(layout.is_token(11));
  CHECK(layout.positions.data == places.data());
}

TEST_CASE("parts that disagree are refused with their numbers") {
  std::array<std::int32_t, 3> const lengths{};
  CHECK_THROWS_WITH_AS(
      static_cast<void>(nn::layout_of<HostSpace>(Padded{{nullptr, {5, 4, 1}}, {lengths.data(), {2}}}, positions)),
      doctest::Contains("5 rows, 2 lengths and 3 positions"), ShapeError);
  CHECK_THROWS_WITH_AS(
      static_cast<void>(nn::layout_of<HostSpace>(Padded{{nullptr, {3, 4, 1}}, {lengths.data(), {2}}}, positions)),
      doctest::Contains("3 rows, 2 lengths and 3 positions"), ShapeError);
  std::array<Index, 4> const offsets{};
  CHECK_THROWS_WITH_AS(
      static_cast<void>(nn::layout_of<HostSpace>(Ragged{{nullptr, {0}}, {offsets.data(), {3}}, 0}, positions)),
      doctest::Contains("3 offsets and 3 positions"), ShapeError);
  CHECK_THROWS_WITH_AS(static_cast<void>(nn::layout_of<HostSpace>(Single{{nullptr, {4}}}, positions)),
                       doctest::Contains("4 rows of one element and 3 positions"), ShapeError);
  CHECK_THROWS_WITH_AS(static_cast<void>(nn::layout_of<HostSpace>(Fixed{{nullptr, {4, 2}}}, positions)),
                       doctest::Contains("4 rows of one length and 3 positions"), ShapeError);
  CHECK_THROWS_WITH_AS(static_cast<void>(nn::layout_of<HostSpace>(
                           Padded{{nullptr, {3, 4, 1}}, {lengths.data(), {3}}, Side::start}, positions)),
                       doctest::Contains("padding is at the start"), ShapeError);
}
