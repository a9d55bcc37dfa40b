// SPDX-License-Identifier: Apache-2.0
#include <lockstep/optim/slice.hpp>

#include <doctest/doctest.h>

#include <type_traits>
#include <lockstep/memory/space.hpp>

using HostSlice = lockstep::optim::Slice<float, lockstep::HostSpace>;

TEST_CASE("a slice is a plain value: empty by default, with read-only gradients, of one space") {
  HostSlice const slice{};
  CHECK(slice.count == 0);
  CHECK(slice.values == nullptr);
  static_assert(std::is_trivially_copyable_v<HostSlice>);
  static_assert(std::is_const_v<std::remove_pointer_t<decltype(HostSlice::gradients)>>);
  static_assert(!std::is_convertible_v<lockstep::optim::Slice<float, lockstep::CudaSpace>, HostSlice>);
}

TEST_CASE("a shadow rounds to its own type, and is absent by default") {
  using lockstep::bfloat16, lockstep::float16, lockstep::optim::HalfPrecisionCopy;
  CHECK_FALSE(HalfPrecisionCopy());
  CHECK_FALSE(HalfPrecisionCopy() + 5);
  bfloat16 low[3];
  float16 half[3];
  HalfPrecisionCopy const of_low(low), of_half(half);
  CHECK(of_low);
  CHECK(of_half);
  constexpr float x = 1 + 0x1p-9f;
  (of_low + 1).put(1, x);
  (of_half + 1).put(1, x);
  CHECK(low[2].bits == bfloat16(x).bits);
  CHECK(half[2].bits == float16(x).bits);
  CHECK(static_cast<float>(low[2]) != static_cast<float>(half[2]));
}
