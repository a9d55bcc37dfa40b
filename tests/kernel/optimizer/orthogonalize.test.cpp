// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/optimizer/orthogonalize.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

using namespace lockstep;
using kernel::NewtonSchulz;

namespace {

constexpr NewtonSchulz muon{{3.4445, -4.775, 2.0315}, 5, 1e-7};

template <class T>
std::vector<T> random(Index count) {
  std::mt19937 engine(7);
  std::normal_distribution<double> normal;
  std::vector<T> out(static_cast<std::size_t>(count));
  for (auto& x : out) x = static_cast<T>(normal(engine));
  return out;
}

template <class T>
std::vector<T> orthogonalized(NewtonSchulz const& by, std::vector<T> x, Index rows, Index columns, int threads = 1,
                              memory::MatrixProductSetting const* products = nullptr) {
  ThreadPool pool(threads);
  std::vector<T> work(static_cast<std::size_t>(NewtonSchulz::work_elements(rows, columns)),
                      std::numeric_limits<T>::quiet_NaN());
  auto const* result = kernel::Orthogonalize<HostSpace>::run<T>(memory::Stream<HostSpace>(pool, products), by,
                                                                {x.data(), {rows, columns}}, work.data());
  return {result, result + rows * columns};
}

/// The formula in double, with plain loops. Iterates the matrix as it is, of any shape: X (X^T X) equals (X X^T) X.
std::vector<double> by_formula(NewtonSchulz const& by, std::vector<double> x, Index rows, Index columns) {
  auto const m = static_cast<std::size_t>(rows), n = static_cast<std::size_t>(columns);
  double squares = 0;
  for (auto const each : x) squares += each * each;
  for (auto& each : x) each /= std::max(std::sqrt(squares), by.epsilon);
  auto const times_gram = [&](std::vector<double> const& of) {  // X X^T of
    std::vector<double> gram(m * m), out(m * n);
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t j = 0; j < m; ++j)
        for (std::size_t k = 0; k < n; ++k) gram[i * m + j] += x[i * n + k] * x[j * n + k];
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t k = 0; k < m; ++k)
        for (std::size_t j = 0; j < n; ++j) out[i * n + j] += gram[i * m + k] * of[k * n + j];
    return out;
  };
  for (int t = 0; t < by.iterations; ++t) {
    auto const cube = times_gram(x), fifth = times_gram(cube);
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = by.coefficients[0] * x[i] + by.coefficients[1] * cube[i] + by.coefficients[2] * fifth[i];
  }
  return x;
}

}  // namespace

TEST_CASE_TEMPLATE("a matrix of any shape is orthogonalized as by the formula", T, double, float) {
  for (auto const& shape : {Extents<2>{1, 1}, {1, 33}, {33, 1}, {7, 7}, {31, 32}, {32, 31}, {97, 98}, {98, 97}}) {
    Index const rows = shape[0], columns = shape[1];
    CAPTURE(rows);
    CAPTURE(columns);
    auto const x = random<T>(rows * columns);
    auto const got = orthogonalized(muon, x, rows, columns);
    auto const expected = by_formula(muon, {x.begin(), x.end()}, rows, columns);
    // Singular values of all iterates are at most 1.21. With s the shorter side and l the longer, an iteration sums l
    // terms in A, s in A^2 and s in the last product. Errors of a product are at most k u times the norms of its
    // factors, and Frobenius norms at most 1.21 sqrt(s); |b| + 2 |c| 1.21^2 < 11. So an iteration errs by at most
    // 25 (l + 2 s + 10) sqrt(s) u, and multiplies earlier errors by at most 3.9 (see golden/optimizers): in all 1213.
    auto const s = static_cast<double>(std::min(rows, columns)), l = static_cast<double>(std::max(rows, columns));
    double const bound = 1213 * 25 * (l + 2 * s + 10) * std::sqrt(s) * std::numeric_limits<T>::epsilon() / 2;
    double error = 0, size = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      error += (static_cast<double>(got[i]) - expected[i]) * (static_cast<double>(got[i]) - expected[i]);
      size += expected[i] * expected[i];
    }
    CHECK(std::sqrt(error) <= bound);
    if (std::is_same_v<T, float>)
      CHECK(std::sqrt(error) <= 1e-4 * std::sqrt(size));  // errors are random, not the worst
  }
}

TEST_CASE("the cubic iteration converges to a matrix with orthonormal rows or columns") {
  NewtonSchulz const cubic{{1.5, -0.5, 0}, 40, 1e-7};
  for (auto const& shape : {Extents<2>{20, 50}, {50, 20}, {1, 9}}) {
    Index const rows = shape[0], columns = shape[1];
    auto const x = orthogonalized(cubic, random<double>(rows * columns), rows, columns);
    auto const at = [&](Index i, Index j) { return x[static_cast<std::size_t>(i * columns + j)]; };
    bool const tall = rows > columns;
    for (Index i = 0; i < std::min(rows, columns); ++i)
      for (Index j = 0; j <= i; ++j) {
        double dot = 0;
        for (Index k = 0; k < std::max(rows, columns); ++k) dot += tall ? at(k, i) * at(k, j) : at(i, k) * at(j, k);
        CHECK(std::abs(dot - (i == j ? 1 : 0)) <= 1e-13);
      }
  }
}

TEST_CASE("bits do not depend on threads, and a power of two as factor changes none") {
  for (auto const& shape : {Extents<2>{33, 65}, {97, 193}, {200, 100}}) {
    Index const rows = shape[0], columns = shape[1];
    auto const x = random<float>(rows * columns);
    auto const one = orthogonalized(muon, x, rows, columns);
    for (int threads : {2, 3}) CHECK(orthogonalized(muon, x, rows, columns, threads) == one);
    auto scaled = x;
    for (auto& each : scaled) each *= 0x1p-20f;
    CHECK(orthogonalized(muon, scaled, rows, columns) == one);
  }
}

TEST_CASE("a matrix of zeros stays zero, and epsilon bounds the divisor") {
  std::vector<float> const zeros(12);
  CHECK(orthogonalized(muon, zeros, 3, 4) == zeros);
  auto const x = orthogonalized<double>({{1, 0, 0}, 1, 4}, {1, 0, 0, 1}, 2, 2);
  CHECK(x == std::vector<double>{0.25, 0, 0, 0.25});
}

TEST_CASE("matrix products of a 16-bit stream round their factors") {
  auto const x = random<float>(64 * 128);
  auto const exact = orthogonalized(muon, x, 64, 128),
             rounded = orthogonalized(muon, x, 64, 128, 1, &kernel::bfloat16_products);
  double error = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    error = std::max(error, static_cast<double>(std::abs(exact[i] - rounded[i])));
  CHECK(error < 0.05);  // 0 on processors without such products
}
