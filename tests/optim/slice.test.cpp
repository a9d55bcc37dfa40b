// SPDX-License-Identifier: Apache-2.0
#include <lockstep/optim/slice.hpp>

#include <doctest/doctest.h>

#include <type_traits>
#include <lockstep/memory/space.hpp>

using HostSlice = lockstep::optim::Slice<float, lockstep::HostSpace>;

TEST_CASE("a slice is a plain value: empty at first, gradients read-only, of one space") {
  HostSlice const slice{};
  CHECK(slice.count == 0);
  CHECK(slice.values == nullptr);
  static_assert(std::is_trivially_copyable_v<HostSlice>);
  static_assert(std::is_const_v<std::remove_pointer_t<decltype(HostSlice::gradients)>>);
  static_assert(!std::is_convertible_v<lockstep::optim::Slice<float, lockstep::CudaSpace>, HostSlice>);
}
