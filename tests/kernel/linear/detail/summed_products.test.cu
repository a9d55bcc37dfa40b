// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/linear/detail/summed_products.cuh>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <vector>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/float16.hpp>

#include "kernel/values.hpp"
#include "memory/device.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;

namespace summed_products {
namespace {

constexpr Index count = 3, gap = 24;  // elements between two matrices of B

/// Three pairs of matrices in a 16-bit type, with their products' sum in double.
template <class T>
struct Case {
  Index m, n, k;
  std::vector<T> a = rounded(count * m * k, 1), b = rounded(count * (k * n + gap), 2), c = rounded(m * n, 3);

  static std::vector<T> rounded(Index size, std::uint64_t seed) {
    std::vector<T> out;
    for (auto value : lockstep_test::values<float>(size, seed)) out.push_back(static_cast<T>(value));
    return out;
  }
  /// Whether every result is the exact sum, rounded once. The sum has 3 k + 1 terms. Tensor cores may truncate each to
  /// 2^-22 of the largest.
  [[nodiscard]] bool agrees(std::vector<T> const& got, Write write) const {
    double const half_unit = std::is_same_v<T, bfloat16> ? 0x1p-8 : 0x1p-11;
    auto const number = [](T x) { return static_cast<double>(static_cast<float>(x)); };
    for (Index row = 0; row < m; ++row)
      for (Index column = 0; column < n; ++column) {
        auto const at = static_cast<std::size_t>(row * n + column);
        double exact = write == Write::add ? number(c[at]) : 0, magnitude = std::abs(exact);
        for (Index i = 0; i < count; ++i)
          for (Index step = 0; step < k; ++step) {
            auto const term = number(a[static_cast<std::size_t>((i * m + row) * k + step)]) *
                              number(b[static_cast<std::size_t>(i * (k * n + gap) + step * n + column)]);
            exact += term;
            magnitude += std::abs(term);
          }
        auto const bound = half_unit * std::abs(exact) + 2 * static_cast<double>(3 * k + 1) * 0x1p-22 * magnitude;
        if (!(std::abs(number(got[at]) - exact) <= bound)) return false;
      }
    return true;
  }
};

template <class T>
struct Matrices {
  OnDevice<T> a, b, c;

  explicit Matrices(Case<T> const& from) : a(from.a), b(from.b), c(from.c) {}
  [[nodiscard]] kernel::detail::SummedProducts<T> arguments(Case<T> const& from, Write write) const {
    return {count,          a.view(0).data, from.m * from.k, b.view(0).data, from.k * from.n + gap,
            c.view(0).data, write,          from.m,          from.n,         from.k};
  }
};

template <class T, int side>
std::vector<T> with_shape(memory::CudaStream const& stream, Case<T> const& from, Write write) {
  using Shape = kernel::detail::SummedShape<side>;
  Matrices<T> const matrices(from);
  auto const blocks = (from.m + side - 1) / side * ((from.n + side - 1) / side);
  kernel::detail::launch_grid<Shape::shared_bytes>("summed_products", stream.view(), static_cast<unsigned>(blocks),
                                                   Shape::threads, kernel::detail::sum_products<T, side>,
                                                   matrices.arguments(from, write));
  return matrices.c.values();
}

}  // namespace

TEST_CASE_TEMPLATE("sums of products are rounded once, with equal bits for both sizes of blocks", T, bfloat16,
                   float16) {
  if (!lockstep_test::has_gpu("kernel::detail::sum_products") || !kernel::detail::has_tensor_cores()) return;
  memory::CudaStream const stream;
  struct Shape {
    Index m, n, k;
    Write write;
  };
  for (auto [m, n, k, write] :
       {Shape{1, 8, 8, Write::add}, Shape{63, 56, 16, Write::overwrite}, Shape{64, 64, 64, Write::add},
        Shape{65, 72, 72, Write::overwrite}, Shape{129, 8, 40, Write::add}, Shape{17, 136, 24, Write::overwrite}}) {
    Case<T> const c{m, n, k};
    CAPTURE(c.m);
    CAPTURE(c.n);
    CAPTURE(c.k);
    auto const got = with_shape<T, 64>(stream, c, write);
    CHECK(c.agrees(got, write));
    CHECK(with_shape<T, 128>(stream, c, write) == got);
  }
}

TEST_CASE("only suitable products are summed in one kernel") {
  if (!lockstep_test::has_gpu("kernel::detail::sum_products") || !kernel::detail::has_tensor_cores()) return;
  using T = bfloat16;
  memory::CudaStream const stream;
  Case<T> const c{40, 16, 24};
  Matrices<T> const matrices(c);
  auto const is_summed = [&](auto const& change) {
    auto arguments = matrices.arguments(c, Write::overwrite);
    change(arguments);
    auto const before = stream.view().queued().kernels;
    bool const summed = kernel::detail::try_sum_products<T>("summed_products", stream.view(), arguments);
    CHECK(stream.view().queued().kernels - before == (summed ? 1 : 0));
    return summed;
  };
  CHECK(is_summed([](auto&) {}));
  CHECK(c.agrees(matrices.c.values(), Write::overwrite));
  CHECK_FALSE(is_summed([](auto& in) { in.m = 0; }));
  CHECK_FALSE(is_summed([](auto& in) { in.n = 12; }));
  CHECK_FALSE(is_summed([](auto& in) { in.n = 264; }));
  CHECK_FALSE(is_summed([](auto& in) { in.k = 20; }));
  CHECK_FALSE(is_summed([](auto& in) { in.b_stride += 4; }));
  CHECK_FALSE(is_summed([](auto& in) { in.a += 4; }));
  CHECK_FALSE(is_summed([](auto& in) { in.b += 4; }));
  CHECK_FALSE(is_summed([](auto& in) { in.c += 4; }));
}

}  // namespace summed_products
