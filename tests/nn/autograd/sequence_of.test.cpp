// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/autograd/sequence_of.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <lockstep/core/thread_pool.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/pass.hpp>

using namespace lockstep;

namespace {
template <int Rank>
struct Padded {
  TensorView<float const, Rank, HostSpace> values;
  TensorView<std::int32_t const, 1, HostSpace> lengths;
};
template <int Rank>
struct Ragged {
  TensorView<float const, Rank, HostSpace> values;
  TensorView<Index const, 1, HostSpace> offsets;
  Index longest = 0;
};
std::array<Index, 2> const places{4, 5};
TensorView<Index const, 1, HostSpace> const positions{places.data(), {2}};
std::array<std::int32_t, 2> const lengths{3, 1};
std::array<Index, 3> const offsets{0, 3, 4};
}  // namespace

TEST_CASE("numbers and arrays, padded and ragged, become rows of an activation without a gradient") {
  ThreadPool pool(1);
  nn::Context<float, HostSpace> context{memory::Stream<HostSpace>(pool)};
  nn::Pass(context).begin_micro_batch(nn::Mode::training, 1);
  std::vector<float> const numbers(12, 1.5F);
  auto const check = [&](auto const& column, Extents<2> extent) {
    auto const x = nn::sequence_of(context, column, positions);
    CHECK(x.tokens.value.extent == extent);
    CHECK(x.tokens.value.data == numbers.data());  // no copy
    CHECK(x.tokens.slot == nullptr);
    CHECK(x.layout.tokens(0) == 3);
    CHECK(x.layout.slots == extent[0]);
  };
  check(Padded<2>{{numbers.data(), {2, 3}}, {lengths.data(), {2}}}, {6, 1});
  check(Padded<3>{{numbers.data(), {2, 3, 2}}, {lengths.data(), {2}}}, {6, 2});
  check(Ragged<1>{{numbers.data(), {4}}, {offsets.data(), {3}}, 3}, {4, 1});
  check(Ragged<2>{{numbers.data(), {4, 3}}, {offsets.data(), {3}}, 3}, {4, 3});
}

TEST_CASE("vectors of a width known at run time have the layout of another column's steps") {
  ThreadPool pool(1);
  nn::Context<float, HostSpace> context{memory::Stream<HostSpace>(pool)};
  nn::Pass(context).begin_micro_batch(nn::Mode::training, 1);
  std::vector<float> const numbers(18, 1.5F);
  auto const check = [&](auto const& steps, auto const& column, Index slots) {
    auto const layout = nn::layout_of<HostSpace>(steps, positions);
    auto const x = nn::sequence_of(context, column, layout, 3);
    CHECK(x.tokens.value.extent == Extents<2>{slots, 3});
    CHECK(x.tokens.value.data == numbers.data());  // no copy
    CHECK(x.tokens.slot == nullptr);
    CHECK(x.layout.tokens(1) == 1);
    auto const sentence = "steps of 2 need " + std::to_string(2 * slots);
    CHECK_THROWS_WITH_AS(static_cast<void>(nn::sequence_of(context, column, layout, 2)),
                         doctest::Contains(sentence.c_str()), ShapeError);
  };
  std::array<std::int32_t, 2> const wide_lengths{9, 3};
  std::array<Index, 3> const wide_offsets{0, 9, 12};
  check(Padded<2>{{numbers.data(), {2, 3}}, {lengths.data(), {2}}},
        Padded<2>{{numbers.data(), {2, 9}}, {wide_lengths.data(), {2}}}, 6);
  check(Ragged<1>{{numbers.data(), {4}}, {offsets.data(), {3}}, 3},
        Ragged<1>{{numbers.data(), {12}}, {wide_offsets.data(), {3}}, 9}, 4);
}

TEST_CASE("one number for each sample is a sequence of one step") {
  ThreadPool pool(1);
  nn::Context<float, HostSpace> context{memory::Stream<HostSpace>(pool)};
  nn::Pass(context).begin_micro_batch(nn::Mode::training, 1);
  std::array<float, 2> const numbers{1, 2};
  struct Single {
    TensorView<float const, 1, HostSpace> values;
  };
  auto const x = nn::sequence_of(context, Single{{numbers.data(), {2}}}, positions);
  CHECK(x.tokens.value.extent == Extents<2>{2, 1});
  CHECK(x.layout.tokens(1) == 1);
}

TEST_CASE("another precision is converted") {
  ThreadPool pool(1);
  nn::Context<double, HostSpace> context{memory::Stream<HostSpace>(pool)};
  nn::Pass(context).begin_micro_batch(nn::Mode::training, 1);
  std::array<float, 4> const numbers{1, 2, 3, 4};
  auto const x =
      nn::sequence_of(context, Ragged<1>{{numbers.data(), {4}}, {offsets.data(), {3}}, 3}, positions).tokens.value;
  CHECK(std::vector<double>(x.data, x.data + 4) == std::vector<double>{1, 2, 3, 4});
}

TEST_CASE("the places of an image become tokens, which share its gradient") {
  ThreadPool pool(1);
  nn::Context<float, HostSpace> context{memory::Stream<HostSpace>(pool)};
  nn::Pass(context).begin_micro_batch(nn::Mode::training, 1);
  auto const image = context.variable<4>({2, 3, 4, 5});
  auto const tokens = nn::sequence_of(image, positions);
  CHECK(tokens.tokens.value.extent == Extents<2>{24, 5});
  CHECK(tokens.tokens.value.data == image.value.data);
  CHECK(tokens.tokens.slot == image.slot);
  CHECK(tokens.layout.rows == 2);
  CHECK(tokens.layout.start(1) == 12);
  CHECK(tokens.layout.tokens(1) == 12);
  CHECK(tokens.layout.positions(1) == 5);
  auto const none = nn::sequence_of(context.variable<3>({0, 4, 5}), TensorView<Index const, 1, HostSpace>{});
  CHECK(none.layout.rows == 0);
  CHECK_THROWS_WITH_AS(static_cast<void>(nn::sequence_of(context.variable<3>({3, 4, 5}), positions)),
                       "nn::sequence_of: x has 3 rows and there are 2 positions; give it batch.positions()",
                       ShapeError);
}
