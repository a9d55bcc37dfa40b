// SPDX-License-Identifier: Apache-2.0
#include <lockstep/memory/buffer.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <type_traits>
#include <utility>
#include <lockstep/core/error.hpp>

using lockstep::CudaSpace;
using lockstep::HostSpace;
using lockstep::Index;
using lockstep::memory::Buffer;
using lockstep::memory::HostResource;

namespace {
struct Counting {
  std::size_t bytes = 0;
  lockstep::memory::Block allocate(std::size_t asked) {
    bytes += asked;
    return HostResource{}.allocate(asked);
  }
};
}  // namespace

TEST_CASE("a buffer holds zeroed elements") {
  for (Index size : {0, 1, 31, 32, 33}) {
    Buffer<float> buffer(size);
    CHECK(buffer.size() == size);
    CHECK(buffer.span().size() == static_cast<std::size_t>(size));
    for (Index i = 0; i < size; ++i) {
      CHECK(buffer[i] == 0.0f);
      buffer[i] = static_cast<float>(i);
    }
    if (size > 0) CHECK(buffer.span().back() == static_cast<float>(size - 1));
  }
  CHECK(Buffer<float>().size() == 0);
}

TEST_CASE("memory comes from the resource") {
  Counting resource;
  Buffer<double> const buffer(5, resource);
  CHECK(resource.bytes == 40);
  CHECK(buffer.size() == 5);
}

TEST_CASE("a buffer can be moved and not copied") {
  static_assert(!std::is_copy_constructible_v<Buffer<int>> && std::is_nothrow_move_constructible_v<Buffer<int>>);
  Buffer<int> first(3);
  first[2] = 7;
  auto* const data = first.data();
  Buffer<int> second(1);
  second = std::move(first);
  CHECK(second.data() == data);
  CHECK(second[2] == 7);
  CHECK(second.size() == 3);
}

TEST_CASE("impossible sizes are refused") {
  CHECK_THROWS_WITH_AS(Buffer<float>(-1), doctest::Contains("-1 elements of 4 bytes"), lockstep::ShapeError);
  auto const largest = std::numeric_limits<Index>::max();
  CHECK_THROWS_AS(Buffer<double>{largest}, lockstep::ShapeError);
}

TEST_CASE("elements of another space are not accessible") {
  static_assert(!std::is_constructible_v<Buffer<float, CudaSpace>, Index>);  // needs its space's resource
  constexpr auto reachable = [](auto const& buffer) {
    return requires { buffer[0]; };
  };
  CHECK(reachable(Buffer<float, HostSpace>(1)));
  CHECK_FALSE(reachable(Buffer<float, CudaSpace>()));
}
