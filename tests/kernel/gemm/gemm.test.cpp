// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/gemm/gemm.hpp>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <lockstep/core/bfloat16.hpp>

#include "gemm_cases.hpp"

using namespace gemm_cases;
using lockstep::HostSpace;
using lockstep::InstructionSet;
using lockstep::ShapeError;
using lockstep::ThreadPool;
using lockstep::kernel::Gemm;
using lockstep::memory::Stream;
using lockstep_test::view;
namespace detail = lockstep::kernel::detail;

namespace {

template <class T>
std::vector<T> product(Case<T> const& x, int threads, detail::RoundedProducts const* rounded = nullptr) {
  ThreadPool pool(threads);
  auto c = x.c;
  if (x.beta == 0) std::fill(c.begin(), c.end(), std::numeric_limits<T>::quiet_NaN());  // must not be read
  Gemm<HostSpace>::multiply<T>(Stream<HostSpace>(pool, rounded), x.alpha, x.a_view(), x.a_transpose, x.b_view(),
                               x.b_transpose, x.beta, view(c, x.shape.m, x.shape.n));
  return c;
}

template <class T>
bool same_bits(std::vector<T> const& a, std::vector<T> const& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

}  // namespace

TEST_CASE_TEMPLATE("products equal their definition, for every transposition", T, float, double) {
  for (auto shape : shapes) {
    for (auto const& x : kinds<T>(shape)) {
      CAPTURE(shape.m);
      CAPTURE(shape.n);
      CAPTURE(shape.k);
      CHECK(x.worst_error(product(x, 1)) <= 1);
    }
  }
}

TEST_CASE_TEMPLATE("every instruction set's tile computes equal products", T, float, double) {
  std::vector<InstructionSet> sets{InstructionSet::baseline};
  for (auto set : {InstructionSet::avx2, InstructionSet::avx512})
    if (detail::gemm_instruction_set() >= set) sets.push_back(set);
  auto const bias = lockstep_test::values<T>(400, 4);
  for (auto set : sets) {
    CAPTURE(to_string(set));
    for (auto shape : shapes) {
      auto const a_transpose = shape.m < 512 ? Transpose::no : Transpose::yes;
      Case<T> x{.shape = shape, .a_transpose = a_transpose, .b_transpose = Transpose::yes};
      auto c = x.c;
      ThreadPool pool(1);
      auto block = Gemm<HostSpace>::described<T>(Stream<HostSpace>(pool), 1, x.a_view(), x.a_transpose, x.b_view(),
                                                 x.b_transpose, 0, view(c, shape.m, shape.n));
      block.bias = bias.data();
      std::vector<int> done(x.c.size());
      auto const mark = [&](Index i, Index rows, Index j, Index columns) {
        for (Index e = 0; e < rows * columns; ++e)
          ++done[static_cast<std::size_t>((i + e / columns) * shape.n + j + e % columns)];
      };
      detail::multiply_block(set, block, mark);
      CHECK(done == std::vector<int>(x.c.size(), 1));
      // C is now A B + bias; with beta = 1 and C = bias it is a product that the oracle knows.
      x.beta = 1;
      for (Index i = 0; i < shape.m; ++i)
        for (Index j = 0; j < shape.n; ++j)
          x.c[static_cast<std::size_t>(i * shape.n + j)] = bias[static_cast<std::size_t>(j)];
      CHECK(x.worst_error(c) <= 1);
    }
  }
}

TEST_CASE_TEMPLATE("a square of each vector's width is transposed", T, float, double, std::uint32_t) {
  auto const check = []<std::size_t bytes>(std::integral_constant<std::size_t, bytes>) {
    constexpr std::size_t lanes = bytes / sizeof(T), from_row = lanes + 3, to_row = lanes + 5;
    std::vector<T> from(lanes * from_row), to(lanes * to_row), expected(lanes * to_row);
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<T>(i + 1);
    for (std::size_t p = 0; p < lanes; ++p)
      for (std::size_t x = 0; x < lanes; ++x) expected[p * to_row + x] = from[x * from_row + p];
    detail::transpose_square<T, bytes>(from.data(), from_row, to.data(), to_row);
    CHECK(to == expected);  // and nothing is written outside the square
  };
  check(std::integral_constant<std::size_t, 16>{});
  check(std::integral_constant<std::size_t, 32>{});
  check(std::integral_constant<std::size_t, 64>{});
}

TEST_CASE_TEMPLATE("a product of few rows has the bits of these rows in a product of many", T, float, double) {
  std::vector<InstructionSet> sets{InstructionSet::baseline};
  for (auto set : {InstructionSet::avx2, InstructionSet::avx512})
    if (detail::gemm_instruction_set() >= set) sets.push_back(set);
  ThreadPool pool(1);
  for (auto set : sets)
    for (Index const n : {1, 7, 8, 16, 31, 33, 130})
      for (Index const k : {0, 1, 5, 8, 511, 512, 513, 1100}) {
        CAPTURE(to_string(set));
        CAPTURE(n);
        CAPTURE(k);
        constexpr Index many = detail::few_rows + 1;
        auto const a = lockstep_test::values<T>(many * k, 1), b = lockstep_test::values<T>(n * k, 2),
                   bias = lockstep_test::values<T>(n, 3);
        for (auto const* const added : {bias.data(), static_cast<T const*>(nullptr)}) {
          auto const multiplied = [&](Index first, Index rows) {
            std::vector<T> c(static_cast<std::size_t>(rows * n));
            lockstep::TensorView<T const, 2, HostSpace> const some(a.data() + first * k, {rows, k});
            auto block = Gemm<HostSpace>::described<T>(Stream<HostSpace>(pool), 1, some, Transpose::no, view(b, n, k),
                                                       Transpose::yes, 0, view(c, rows, n));
            block.bias = added;
            Index parts = 0;
            detail::multiply_block(set, block,
                                   [&](Index, Index part, Index, Index columns) { parts += part * columns; });
            CHECK(parts == rows * n);
            return c;
          };
          auto const all = multiplied(0, many);
          for (Index const rows : {1, 2, 3, 4, 6, 9, 16}) {
            CAPTURE(rows);
            for (Index const first : {Index{0}, many - rows})
              CHECK(same_bits(multiplied(first, rows), {all.begin() + first * n, all.begin() + (first + rows) * n}));
          }
        }
      }
}

TEST_CASE("several threads' parts are reported with their place, and add their part of the bias") {
  ThreadPool pool(3);
  auto const bias = lockstep_test::values<float>(600, 4);
  for (auto shape : {Shape{70, 600, 20}, Shape{300, 520, 8}}) {
    Case<float> x{.shape = shape, .b_transpose = Transpose::yes};
    auto c = x.c;
    auto block = Gemm<HostSpace>::described<float>(Stream<HostSpace>(pool), 1, x.a_view(), x.a_transpose, x.b_view(),
                                                   x.b_transpose, 0, view(c, shape.m, shape.n));
    block.bias = bias.data();
    std::vector<int> done(x.c.size());  // no two threads have an element in common
    Gemm<HostSpace>::multiply(Stream<HostSpace>(pool), block, [&](Index i, Index rows, Index j, Index columns) {
      for (Index e = 0; e < rows * columns; ++e)
        ++done[static_cast<std::size_t>((i + e / columns) * shape.n + j + e % columns)];
    });
    CHECK(done == std::vector<int>(x.c.size(), 1));
    x.beta = 1;
    for (std::size_t i = 0; i < x.c.size(); ++i) x.c[i] = bias[i % static_cast<std::size_t>(shape.n)];
    CHECK(x.worst_error(c) <= 1);
  }
}

TEST_CASE("exact bfloat16 factors are multiplied exactly, also if rounding is allowed") {
  auto const round = [](std::vector<float>& all) {
    for (auto& x : all) x = lockstep::bfloat16(x);
  };
  for (auto shape : shapes) {
    for (auto x : kinds<float>(shape)) {
      CAPTURE(shape.m);
      CAPTURE(shape.n);
      CAPTURE(shape.k);
      round(x.a);
      round(x.b);
      CHECK(x.worst_error(product(x, 1, &lockstep::kernel::bfloat16_products)) <= 1);
      CHECK(same_bits(product(x, 1, &lockstep::kernel::bfloat16_products),
                      product(x, 3, &lockstep::kernel::bfloat16_products)));
    }
  }
}

#if LOCKSTEP_HAS_BFLOAT16_PRODUCTS
namespace {
/// A product by one of the bfloat16 tiles, whichever this processor would choose.
template <class Tile>
std::vector<float> product_by(Case<float> const& x) {
  ThreadPool pool(1);
  auto c = x.c;
  auto const block =
      Gemm<HostSpace>::described<float>(Stream<HostSpace>(pool), x.alpha, x.a_view(), x.a_transpose, x.b_view(),
                                        x.b_transpose, x.beta, view(c, x.shape.m, x.shape.n));
  detail::multiply_blocks<float, Tile>(block, {});
  return c;
}
}  // namespace

TEST_CASE("every bfloat16 tile that this processor supports computes equal products") {
  auto const round = [](std::vector<float>& all) {
    for (auto& x : all) x = lockstep::bfloat16(x);
  };
  for (auto shape : shapes) {
    for (auto x : kinds<float>(shape)) {
      CAPTURE(shape.m);
      CAPTURE(shape.n);
      CAPTURE(shape.k);
      round(x.a);
      round(x.b);
      if (lockstep::multiplies_bfloat16()) CHECK(x.worst_error(product_by<detail::Bfloat16Tile<>>(x)) <= 1);
      if (lockstep::multiplies_bfloat16_tiles()) {
        detail::AmxRegisters const configured;
        auto const c = product_by<detail::AmxTile>(x);
        CHECK(x.worst_error(c) <= 1);
        CHECK(same_bits(
            c,
            product(x, 1, &lockstep::kernel::bfloat16_products)));  // its own product leaves the registers configured
        CHECK(same_bits(c, product_by<detail::AmxTile>(x)));
      }
    }
  }
}
#endif

TEST_CASE("factors are rounded to nearest only if it is allowed and the processor multiplies bfloat16") {
  bool const rounds = lockstep::multiplies_bfloat16();
  for (Index const k : {1, 2, 31, 32, 33, 64}) {
    for (auto a : {Transpose::no, Transpose::yes}) {
      for (auto b : {Transpose::no, Transpose::yes}) {
        CAPTURE(k);
        Case<float> x{.shape = {17, 19, k}, .a_transpose = a, .b_transpose = b};
        std::fill(x.a.begin(), x.a.end(), 0x1.03p0F);  // halfway: the even one of both is 0x1.04p0
        std::fill(x.b.begin(), x.b.end(), 0x1.05p0F);
        auto const as_they_are = product(x, 1), rounded = product(x, 1, &lockstep::kernel::bfloat16_products);
        auto const steps = static_cast<float>(k);
        CHECK(as_they_are.back() == steps * (0x1.03p0F * 0x1.05p0F));
        CHECK(rounded.back() == steps * (rounds ? 0x1.04p0F * 0x1.04p0F : 0x1.03p0F * 0x1.05p0F));
        CHECK(rounded.front() == rounded.back());
      }
    }
  }
}

TEST_CASE("a product of factors that may be rounded propagates NaN and infinity") {
  Case<float> x{.shape = {8, 40, 70}, .b_transpose = Transpose::yes};
  x.a[3 * 70 + 5] = std::numeric_limits<float>::infinity();
  x.b[7 * 70 + 69] = std::numeric_limits<float>::quiet_NaN();
  auto const c = product(x, 1, &lockstep::kernel::bfloat16_products);
  for (Index i = 0; i < 8; ++i)
    for (Index j = 0; j < 40; ++j) CHECK(std::isfinite(c[static_cast<std::size_t>(i * 40 + j)]) == (i != 3 && j != 7));
}

TEST_CASE_TEMPLATE("bits do not depend on threads or repetition", T, float, double) {
  for (auto shape : {Shape{600, 300, 128}, Shape{1024, 4, 64}, Shape{33, 600, 300}}) {
    for (auto a_transpose : {Transpose::no, Transpose::yes}) {
      Case<T> const x{.shape = shape, .a_transpose = a_transpose, .b_transpose = Transpose::yes};
      auto const c = product(x, 1);
      for (int threads : {1, 2, 4}) CHECK(same_bits(c, product(x, threads)));
    }
  }
}

TEST_CASE("any shape") {
  CHECK(rc::check("products of random shapes equal their definition", [] {
    auto extent = rc::gen::inRange<Index>(0, 150);
    Shape const shape{*extent, *extent, *rc::gen::inRange<Index>(0, 700)};
    auto transpose = rc::gen::element(Transpose::no, Transpose::yes);
    Case<float> const x{.shape = shape,
                        .alpha = 0.5F,
                        .beta = *rc::gen::element(0.F, 1.F),
                        .a_transpose = *transpose,
                        .b_transpose = *transpose};
    RC_ASSERT(x.worst_error(product(x, 2)) <= 1);
  }));
}

TEST_CASE("shapes that disagree are refused with both sides") {
  Case<float> const x{.shape = {3, 4, 5}};
  ThreadPool pool(1);
  std::vector<float> c(12);
  auto const call = [&](auto b, auto out) {
    Gemm<HostSpace>::multiply<float>(Stream<HostSpace>(pool), 1, x.a_view(), Transpose::no, b, Transpose::no, 0, out);
  };
  std::string what;
  try {
    call(lockstep_test::view(x.b, 4, 5), view(c, 3, 4));
  } catch (ShapeError const& error) {
    what = error.what();
  }
  CHECK(what.find("op(A) is [3, 5], op(B) is [4, 5] and C is [3, 4]") != std::string::npos);
  CHECK_THROWS_AS(call(x.b_view(), view(c, 4, 3)), ShapeError);
  CHECK_THROWS_AS(call(x.b_view(), view(c, 2, 4)), ShapeError);
  CHECK_THROWS_AS(call(x.b_view(), view(c, 3, 3)), ShapeError);
  CHECK_NOTHROW(call(x.b_view(), view(c, 3, 4)));
}
