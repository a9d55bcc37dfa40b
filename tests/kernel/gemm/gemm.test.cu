// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/gemm/gemm.cuh>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "gemm_cases.hpp"
#include "larger_error.hpp"
#include "memory/device.hpp"

using namespace gemm_cases;
using lockstep::CudaSpace;
using lockstep::ShapeError;
using lockstep::kernel::Gemm;
using lockstep_test::OnDevice;

namespace {

template <class T>
std::vector<T> product(lockstep::memory::CudaStream const& stream, Case<T> const& x,
                       std::vector<T> const* bias = nullptr) {
  auto before = x.c;
  if (x.beta == 0) std::fill(before.begin(), before.end(), std::numeric_limits<T>::quiet_NaN());  // must not be read
  OnDevice<T> const a(x.a), b(x.b), c(before), bias_there(bias ? *bias : std::vector<T>{});
  auto const like = [](auto const& device, auto host) { return device.view(host.extent[0], host.extent[1]); };
  Gemm<CudaSpace>::multiply<T>(stream.view(), x.alpha, like(a, x.a_view()), x.a_transpose, like(b, x.b_view()),
                               x.b_transpose, x.beta, c.view(x.shape.m, x.shape.n),
                               bias ? bias_there.view(x.shape.n).data : nullptr);
  return c.values();
}

}  // namespace

TEST_CASE_TEMPLATE("products on CUDA equal their definition, for every transposition", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::Gemm<CudaSpace>")) return;
  lockstep::memory::CudaStream const stream;
  for (auto shape : shapes)
    for (auto const& x : kinds<T>(shape)) {
      CAPTURE(shape.m);
      CAPTURE(shape.n);
      CAPTURE(shape.k);
      auto const c = product(stream, x);
      CHECK(x.worst_error(c) <= 1);
      if (x.beta == 0) CHECK(product(stream, x) == c);
    }
}

TEST_CASE_TEMPLATE("a bias on CUDA is added to every row", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::Gemm<CudaSpace>")) return;
  lockstep::memory::CudaStream const stream;
  for (auto shape : shapes) {
    auto const bias = lockstep_test::values<T>(shape.n, 4);
    Case<T> x{.shape = shape, .b_transpose = Transpose::yes};
    auto const c = product(stream, x, &bias);
    // With beta = 1 and C = bias it is a product that the oracle knows.
    x.beta = 1;
    for (std::size_t i = 0; i < x.c.size(); ++i) x.c[i] = bias[i % bias.size()];
    CHECK(x.worst_error(c) <= 1);
  }
}

// A sum S of terms t is exact here within (k + 4) * 2^-23 * sum |t|: see Case::worst_error, doubled because a tensor
// core may truncate where others round. A bfloat16 result is rounded by at most 2^-8 of its magnitude. Near zero, terms
// cancel, and an error of an intermediate sum is larger than the result: on an H100, with beta and bias, errors of up
// to 0.6 of the result had the size of a rounding of the sum before the bias. Both rounded sums have at most the
// magnitude sum |t|, the result has that of S: error <= (k + 4) * 2^-23 * sum |t| + 2^-8 * (sum |t| + |S|).
TEST_CASE("products on CUDA of bfloat16 factors are summed in float, and rounded at most twice or not at all") {
  if (!lockstep_test::has_gpu("kernel::Gemm<CudaSpace>")) return;
  using lockstep::bfloat16;
  lockstep::memory::CudaStream const stream;
  for (auto shape : {Shape{1, 1, 1}, Shape{33, 20, 17}, Shape{32, 31, 65}, Shape{64, 96, 128}})
    for (bool turned : {false, true})
      for (auto const& [factor, biased] : {std::pair{0.0F, true}, std::pair{1.0F, false}, std::pair{1.0F, true}}) {
        float const beta = factor;
        bool const with_bias = biased;
        CAPTURE(shape.m);
        CAPTURE(turned);
        CAPTURE(beta);
        CAPTURE(with_bias);
        Case<float> x{.shape = shape, .beta = beta, .a_transpose = turned ? Transpose::yes : Transpose::no};
        auto const rounded = [](std::vector<float>& exact) {
          std::vector<bfloat16> low;
          for (auto& e : exact) e = low.emplace_back(e);
          return low;
        };
        auto bias = lockstep_test::values<float>(shape.n, 4);
        OnDevice<bfloat16> const a(rounded(x.a)), b(rounded(x.b)), low(rounded(x.c)), added(rounded(bias));
        OnDevice<float> const wide(x.c);
        auto const multiply = [&](auto c, auto const* bias_there) {
          Gemm<CudaSpace>::multiply<bfloat16>(stream.view(), x.alpha,
                                              a.view(x.a_view().extent[0], x.a_view().extent[1]), x.a_transpose,
                                              b.view(shape.k, shape.n), x.b_transpose, x.beta, c, bias_there);
        };
        multiply(wide.view(shape.m, shape.n), static_cast<float const*>(nullptr));
        multiply(low.view(shape.m, shape.n), with_bias ? added.view(shape.n).data : nullptr);
        CHECK(x.worst_error(wide.values()) <= 2);  // a tensor core may truncate where others round
        auto const got = low.values();
        double worst = 0, largest = 0;
        for (Index i = 0; i < shape.m; ++i)
          for (Index j = 0; j < shape.n; ++j) {
            auto const at = static_cast<std::size_t>(i * shape.n + j);
            double sum = 0, magnitude = 0;
            auto const add = [&](double term) { sum += term, magnitude += std::abs(term); };
            for (Index p = 0; p < shape.k; ++p) add(double{x.a_at(i, p)} * double{x.b_at(p, j)});
            add(double{x.beta} * double{x.c[at]});
            if (with_bias) add(double{bias[static_cast<std::size_t>(j)]});
            double const bound =
                static_cast<double>(shape.k + 4) * 0x1p-23 * magnitude + 0x1p-8 * (magnitude + std::abs(sum));
            double const error = std::abs(static_cast<double>(static_cast<float>(got[at])) - sum);
            largest = lockstep_test::larger_error(largest, error);
            if (!(error <= bound)) worst = lockstep_test::larger_error(worst, error / bound);
          }
        CHECK(worst == 0);
        CHECK(largest > 0);  // it is rounded
      }
}

TEST_CASE("products on CUDA in TF32 round only their factors, and only if it is allowed") {
  if (!lockstep_test::has_gpu("kernel::Gemm<CudaSpace>")) return;
  lockstep::memory::CudaStream const stream;
  Case<float> const x{.shape = {64, 128, 96}};
  auto const exact = product(stream, x);
  Gemm<CudaSpace>::allow_tf32(stream.view(), true);
  auto const rounded = product(stream, x);
  // Each factor is rounded by at most 2^-10 of itself (truncated, or 2^-11 if rounded): 2^-9 of each term, and a
  // little.
  CHECK(x.worst_error(rounded) <= 1.01 * 0x1p-9 / (static_cast<double>(x.shape.k + 4) * 0x1p-24));
  auto const choices = Gemm<CudaSpace>::choose_by_time(stream.view());
  CHECK(choices.find(" tf32\n") != std::string::npos);
  lockstep::memory::CudaStream const other;
  Gemm<CudaSpace>::take_choices(other.view(), choices);
  CHECK(x.worst_error(product(other, x)) <= 1);
  Gemm<CudaSpace>::allow_tf32(stream.view(), false);
  CHECK(x.worst_error(product(stream, x)) <= 1);
  CHECK(x.worst_error(exact) <= 1);
}

TEST_CASE("products on CUDA of matrices at any address") {
  if (!lockstep_test::has_gpu("kernel::Gemm<CudaSpace>")) return;
  lockstep::memory::CudaStream const stream;
  Case<float> const x{.shape = {33, 20, 17}};
  std::vector<float> shifted(1);
  shifted.insert(shifted.end(), x.a.begin(), x.a.end());
  OnDevice<float> const a(shifted), b(x.b), c(x.c);
  Gemm<CudaSpace>::multiply<float>(stream.view(), 1, {a.view(1).data + 1, {33, 17}}, Transpose::no, b.view(17, 20),
                                   Transpose::no, 0, c.view(33, 20));
  CHECK(x.worst_error(c.values()) <= 1);
}

TEST_CASE(
    "products with an algorithm chosen by time equal their definition, and so do other streams' with that choice") {
  if (!lockstep_test::has_gpu("kernel::Gemm<CudaSpace>")) return;
  lockstep::memory::CudaStream const first, second;
  Case<float> const cases[]{{.shape = {33, 20, 17}, .alpha = 0.5F, .beta = 1},
                            {.shape = {33, 20, 17}, .b_transpose = Transpose::yes},
                            {.shape = {64, 128, 96}},
                            {.shape = {64, 128, 96}, .a_transpose = Transpose::yes}};
  auto const bias = lockstep_test::values<float>(20, 4);
  for (auto const& x : cases) static_cast<void>(product(first, x));
  static_cast<void>(product(first, cases[1], &bias));
  auto const moves = first.view().memory_version();
  auto const choices = Gemm<CudaSpace>::choose_by_time(first.view());
  CHECK(first.view().memory_version() > moves);
  CHECK(std::ranges::count(choices, '\n') == 1 + 5);  // the machine's line, and the kinds'
  Gemm<CudaSpace>::take_choices(second.view(), choices);
  for (auto const& x : cases) {
    auto const c = product(first, x);
    CHECK(x.worst_error(c) <= 1);
    CHECK(product(second, x) == c);
  }
  CHECK(product(second, cases[1], &bias) == product(first, cases[1], &bias));
  CHECK(Gemm<CudaSpace>::choose_by_time(lockstep::memory::CudaStream().view()).empty());
  CHECK(Gemm<CudaSpace>::library_version() >= 120000);
}

TEST_CASE("choices of GEMM algorithms from another machine are ignored, damaged ones refused with their line") {
  if (!lockstep_test::has_gpu("kernel::Gemm<CudaSpace>")) return;
  lockstep::memory::CudaStream const stream, other;
  Case<float> const x{.shape = {33, 20, 17}};
  auto const before = product(stream, x);
  auto choices = Gemm<CudaSpace>::choose_by_time(stream.view());
  auto const take = [&](std::string const& text) { Gemm<CudaSpace>::take_choices(other.view(), text); };
  take("another machine" + choices.substr(choices.find('\n')));
  CHECK(product(other, x) == before);
  CHECK_THROWS_WITH_AS(
      take(choices + "0 0 1\n"),
      doctest::Contains("line 3 of the file of chosen GEMM algorithms is '0 0 1', which does not name a kind of GEMM"),
      lockstep::DataError);
  choices.replace(choices.size() - 3, 2, "zz");
  CHECK_THROWS_AS(take(choices), lockstep::DataError);
  // An algorithm that does not exist: the library refuses it, and its heuristics decide.
  choices.replace(choices.rfind(' ') + 1, std::string::npos, std::string(2 * sizeof(cublasLtMatmulAlgo_t), 'f') + "\n");
  take(choices);
  CHECK(x.worst_error(product(other, x)) <= 1);
}

TEST_CASE("shapes that disagree are refused with both sides, on CUDA too") {
  if (!lockstep_test::has_gpu("kernel::Gemm<CudaSpace>")) return;
  lockstep::memory::CudaStream const stream;
  Case<float> const x{.shape = {3, 4, 5}};
  OnDevice<float> const a(x.a), b(x.b), c(x.c);
  CHECK_THROWS_WITH_AS(Gemm<CudaSpace>::multiply<float>(stream.view(), 1, a.view(3, 5), Transpose::no, b.view(4, 5),
                                                        Transpose::no, 0, c.view(3, 4)),
                       doctest::Contains("op(A) is [3, 5], op(B) is [4, 5] and C is [3, 4]"), ShapeError);
}

TEST_CASE("the stream counts the operations of products, by the size of their factors") {
  if (!lockstep_test::has_gpu("kernel::Gemm<CudaSpace>")) return;
  lockstep::memory::CudaStream const stream;
  Case<float> const x{.shape = {3, 4, 5}};
  auto const before = stream.view().queued();
  product(stream, x);
  auto const work = stream.view().queued().since(before);
  CHECK(work.operations == 2 * 3 * 4 * 5);
  CHECK(work.half_operations == 0);
  CHECK(work.kernels == 1);
}
