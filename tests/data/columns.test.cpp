// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/columns.hpp>

#include <array>
#include <cstdint>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

using namespace lockstep;

namespace {

struct Inner {
  float x = 0, y = 0;
};
struct Sample {
  int first = 0;
  std::vector<std::int32_t> tokens;
  int second = 0;
  Inner inner;
  int third = 0;
};

}  // namespace

TEST_CASE("a member finds its own column among others of its type") {
  std::array<Index, 2> const positions{5, 9};
  std::array<int, 6> const numbers{1, 2, 3, 4, 5, 6};
  std::array<float, 2> const floats{7, 8};
  data::Columns<Sample> batch(2, {positions.data(), {2}}, 3);
  std::get<0>(batch.columns()).values = {numbers.data(), {2}};
  std::get<2>(batch.columns()).values = {numbers.data() + 2, {2}};
  std::get<4>(batch.columns()).values = {numbers.data() + 4, {2}};
  std::get<1>(std::get<3>(batch.columns()).columns()).values = {floats.data(), {2}};

  CHECK(batch.rows() == 2);
  CHECK(batch.epoch() == 3);
  CHECK(batch.positions()(1) == 9);
  CHECK(batch[&Sample::first].values(0) == 1);
  CHECK(batch[&Sample::second].values(0) == 3);
  CHECK(batch[&Sample::third].values(1) == 6);
  CHECK(batch[&Sample::inner][&Inner::y].values(1) == 8);
  CHECK(batch[&Sample::inner][&Inner::x].values.data == nullptr);

  auto const copy = batch;  // a view: copies refer to the same memory
  CHECK(copy[&Sample::third].values.data == numbers.data() + 4);
}

TEST_CASE("the space is part of the type") {
  using Device = data::Columns<Sample, CudaSpace>;
  Device const batch;
  static_assert(std::is_same_v<std::remove_cvref_t<decltype(batch[&Sample::tokens])>,
                               data::PaddedColumn<std::int32_t, CudaSpace>>);
  static_assert(std::is_same_v<decltype(batch.positions()), TensorView<Index const, 1, CudaSpace>>);
  CHECK(batch.rows() == 0);
}

TEST_CASE("batches are equal if all columns refer to the same memory and rows and epoch are equal") {
  std::array<int, 4> const numbers{1, 1, 1, 1};
  auto const make = [&](Index epoch, int const* inner_at, Index longest) {
    data::Columns<Sample, HostSpace, data::Sequences::ragged> batch(2, {}, epoch);
    std::get<0>(batch.columns()).values = {numbers.data(), {2}};
    std::get<1>(batch.columns()).longest = longest;
    std::get<0>(std::get<3>(batch.columns()).columns()).values = {reinterpret_cast<float const*>(inner_at), {1}};
    return batch;
  };
  auto const batch = make(3, numbers.data(), 5);
  CHECK(batch == make(3, numbers.data(), 5));
  CHECK(batch != make(4, numbers.data(), 5));
  CHECK(batch != make(3, numbers.data() + 1, 5));
  CHECK(batch != make(3, numbers.data(), 6));
}

namespace {
/// Copies nothing: gives tensors the space of a device at the same address.
struct ToDevice {
  using Space = CudaSpace;
  template <class T, int Rank>
  TensorView<T, Rank, CudaSpace> operator()(TensorView<T, Rank, HostSpace> from) const {
    return {from.data, from.extent};
  }
};
}  // namespace

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
TEST_CASE("a batch is copied to another space with all its columns, also by the function's former name") {
  std::array<Index, 2> const positions{5, 9};
  std::array<int, 2> const numbers{1, 2};
  data::Columns<Sample> batch(2, {positions.data(), {2}}, 3);
  std::get<2>(batch.columns()).values = {numbers.data(), {2}};
  auto const copy = copied(batch, ToDevice{}), same = moved(batch, ToDevice{});
  static_assert(std::is_same_v<decltype(copy), data::Columns<Sample, CudaSpace> const>);
  CHECK(copy == same);
  CHECK(copy.rows() == 2);
  CHECK(copy.positions().data == positions.data());
  CHECK(copy[&Sample::second].values.data == numbers.data());
}
#pragma GCC diagnostic pop
