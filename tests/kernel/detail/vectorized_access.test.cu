// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/detail/vectorized_access.cuh>

#include <doctest/doctest.h>

#include "kernel/values.hpp"
#include "memory/device.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;

// Vectorized accesses are used if the address is aligned, and single ones otherwise: a vector with any beginning and
// length gives equal results, and adjacent elements are not written.
TEST_CASE_TEMPLATE("vectorized accesses on CUDA: every beginning and every length", T, bfloat16, float, double) {
  if (!lockstep_test::has_gpu("kernel::detail::VectorizedAccess")) return;
  memory::CudaStream const stream;
  constexpr Index room = 80;
  auto const x = lockstep_test::values<T>(room, 1), before = lockstep_test::values<T>(room, 2);
  auto const at = [](auto const& values, Index i) {
    return static_cast<Accumulate<T>>(values[static_cast<std::size_t>(i)]);
  };
  for (Index from = 0; from < 9; ++from)
    for (Index to = 0; to < 9; ++to)
      for (Index size : {0, 1, 2, 7, 8, 31, 64, 65}) {
        OnDevice<T> const device_x(x), device_y(before), device_sum(before), device_product(before);
        auto const* const source = device_x.view(room).data + from;
        auto* const y = device_y.view(room).data + to;
        auto* const sum = device_sum.view(room).data + to;
        auto* const product = device_product.view(room).data + to;
        kernel::detail::for_vectorized<T>("test", stream.view(), size,
                                          [=] __device__(kernel::detail::WidestAccess<T> const& access) {
                                            kernel::detail::AccessNumbers<T> numbers;
                                            access.load_as(source, numbers);
                                            access.put(numbers, y);
                                            access.put(numbers, sum, Write::add);
                                            access.multiply(product, numbers);
                                          });
        auto const got = device_y.values(), got_sum = device_sum.values(), got_product = device_product.values();
        Index wrong = 0;
        for (Index i = 0; i < room; ++i) {
          bool const there = i >= to && i < to + size;
          auto const old = at(before, i), access = there ? at(x, i - to + from) : Accumulate<T>{0};
          wrong += at(got, i) != (there ? access : old);
          wrong += at(got_sum, i) != (there ? static_cast<Accumulate<T>>(static_cast<T>(old + access)) : old);
          wrong += at(got_product, i) != (there ? static_cast<Accumulate<T>>(static_cast<T>(old * access)) : old);
        }
        CAPTURE(from);
        CAPTURE(to);
        CAPTURE(size);
        CHECK(wrong == 0);
      }
}
