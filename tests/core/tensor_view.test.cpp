// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/tensor_view.hpp>

#include <doctest/doctest.h>

#include <numeric>
#include <type_traits>
#include <vector>
#include <lockstep/memory/space.hpp>

using lockstep::CudaSpace;
using lockstep::elements;
using lockstep::Extents;
using lockstep::HostSpace;
using lockstep::Index;
using lockstep::TensorView;
using lockstep::to_string;

namespace {
template <class View>
concept Indexable = requires(View view) {
  view(Index{0}, Index{0});
};
}  // namespace

TEST_CASE("the last index is contiguous") {
  std::vector<int> data(2 * 3 * 4);
  std::iota(data.begin(), data.end(), 0);
  TensorView<int, 3, HostSpace> const view{data.data(), {2, 3, 4}};
  CHECK(view.size() == 24);
  int next = 0;
  for (Index i = 0; i < 2; ++i)
    for (Index j = 0; j < 3; ++j)
      for (Index k = 0; k < 4; ++k) CHECK(view(i, j, k) == next++);
  view(1, 2, 3) = -1;
  CHECK(data.back() == -1);
  CHECK(view.span().back() == -1);
}

TEST_CASE("a view without elements, and one of rank 0") {
  TensorView<float, 2, HostSpace> const none;
  CHECK(none.size() == 0);
  CHECK(none.empty());
  CHECK(none.span().empty());
  CHECK(TensorView<float, 2, HostSpace>{nullptr, {5, 0}}.empty());
  float one = 2;
  TensorView<float, 0, HostSpace> const scalar{&one, {}};
  CHECK(scalar.size() == 1);
  CHECK(scalar() == 2);
}

TEST_CASE("a view is reshaped over its elements") {
  std::vector<int> data(6);
  TensorView<int, 2, HostSpace> const view{data.data(), {2, 3}};
  auto const flat = view.reshape(Extents<1>{6});
  static_assert(std::is_same_v<decltype(flat), TensorView<int, 1, HostSpace> const>);
  flat(5) = 9;
  CHECK(view(1, 2) == 9);
}

TEST_CASE("mutable views convert to const ones, not the reverse; spaces do not convert") {
  using Mutable = TensorView<int, 1, HostSpace>;
  using Constant = TensorView<int const, 1, HostSpace>;
  static_assert(std::is_convertible_v<Mutable, Constant>);
  static_assert(!std::is_convertible_v<Constant, Mutable>);
  static_assert(!std::is_convertible_v<Mutable, TensorView<int, 1, CudaSpace>>);
  static_assert(!std::is_convertible_v<TensorView<int, 1, CudaSpace>, Mutable>);
  static_assert(!std::is_convertible_v<Mutable, TensorView<float, 1, HostSpace>>);
  int value = 4;
  Constant const constant = Mutable{&value, {1}};
  CHECK(constant(0) == 4);
}

TEST_CASE("only host memory is read element by element") {
  static_assert(Indexable<TensorView<int, 2, HostSpace>>);
  static_assert(!Indexable<TensorView<int, 2, CudaSpace>>);
  static_assert(!Indexable<TensorView<int, 3, HostSpace>>);  // two indices for three axes
  CHECK(TensorView<int, 2, CudaSpace>{nullptr, {3, 5}}.size() == 15);
}

TEST_CASE("extents count elements and print") {
  CHECK(elements(Extents<3>{2, 3, 4}) == 24);
  CHECK(elements(Extents<0>{}) == 1);
  CHECK(elements(Extents<2>{1 << 20, 1 << 20}) == Index{1} << 40);
  CHECK(to_string(Extents<2>{32, 128}) == "[32, 128]");
  CHECK(to_string(Extents<1>{7}) == "[7]");
  CHECK(to_string(Extents<0>{}) == "[]");
}

TEST_CASE("views are equal if memory and extents are equal, whatever the contents") {
  int values[] = {1, 1, 1};
  TensorView<int, 1, HostSpace> const view(values, {2});
  CHECK(view == TensorView<int, 1, HostSpace>(values, {2}));
  CHECK(view != TensorView<int, 1, HostSpace>(values + 1, {2}));
  CHECK(view != TensorView<int, 1, HostSpace>(values, {3}));
}
