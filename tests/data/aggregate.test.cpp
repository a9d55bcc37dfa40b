// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/aggregate.hpp>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

using namespace lockstep;

namespace {

enum class Colour { red };
struct Inner {
  int a = 0;
  std::vector<float> b;
};
struct Mixed {
  int number = 0;
  std::string text;
  std::vector<int> list;
  std::optional<float> maybe;
  std::array<float, 3> fixed{};
  Colour colour = Colour::red;
  Inner inner;
  bool flag = false;
  std::vector<std::array<float, 3>> points;
  double last = 4;
};
template <class T>
struct One {
  T value{};
};
struct Sixteen {
  int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p;
};
struct ThirtyTwo {
  int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2, b2, c2, d2, e2, f2;
};
struct ThirtyFour {
  int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, a2, b2, c2, d2, e2, f2, g2, h2;
};
struct MoveOnly {
  std::unique_ptr<int> pointer;
  int number = 0;
};
struct WithConstructor {
  explicit WithConstructor(int) {}
};

static_assert(data::member_count<Mixed> == 10);
static_assert(data::member_count<Inner> == 2);
static_assert(data::member_count<One<int>> == 1);
static_assert(data::member_count<One<std::string>> == 1);
static_assert(data::member_count<One<std::vector<int>>> == 1);
static_assert(data::member_count<One<std::optional<int>>> == 1);
static_assert(data::member_count<One<std::array<int, 4>>> == 1);
static_assert(data::member_count<One<Inner>> == 1);
static_assert(data::member_count<Sixteen> == 16);
static_assert(data::member_count<ThirtyTwo> == 32);
static_assert(data::member_count<ThirtyFour> == 33);  // too many to list
static_assert(data::member_count<MoveOnly> == 2);
static_assert(std::is_same_v<data::MembersOf<Inner>, std::tuple<int&, std::vector<float>&>>);

static_assert(data::Aggregate<Mixed>);
static_assert(!data::Aggregate<WithConstructor>);
static_assert(!data::Aggregate<std::array<int, 2>>);
static_assert(!data::Aggregate<std::string>);
static_assert(!data::Aggregate<int>);

}  // namespace

TEST_CASE("members are references to the members themselves, in order") {
  Mixed mixed;
  auto const all = data::members(mixed);
  CHECK(&std::get<0>(all) == &mixed.number);
  CHECK(&std::get<6>(all) == &mixed.inner);
  CHECK(&std::get<9>(all) == &mixed.last);
  std::get<1>(all) = "written";
  CHECK(mixed.text == "written");

  Sixteen sixteen{};
  CHECK(&std::get<0>(data::members(sixteen)) == &sixteen.a);
  CHECK(&std::get<15>(data::members(sixteen)) == &sixteen.p);
  ThirtyTwo many{};
  CHECK(&std::get<0>(data::members(many)) == &many.a);
  CHECK(&std::get<16>(data::members(many)) == &many.q);
  CHECK(&std::get<31>(data::members(many)) == &many.f2);
}

TEST_CASE("members of a const aggregate are const") {
  Inner const inner{3, {}};
  auto const all = data::members(inner);
  static_assert(std::is_same_v<std::tuple_element_t<0, std::remove_const_t<decltype(all)>>, int const&>);
  CHECK(std::get<0>(all) == 3);
}
