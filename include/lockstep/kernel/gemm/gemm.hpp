// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/gemm/detail/gemm_block.hpp>
#include <lockstep/kernel/gemm/gemm_on_this_thread.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {
namespace detail {

/// Blocked matrix product with the processor's bfloat16 instructions. Returns false if the processor has none.
bool multiply_bfloat16(InstructionSet set, GemmBlock<float> const& block, GemmEpilogue epilogue);

}  // namespace detail

/// Whether a product reads a matrix transposed.
enum class Transpose {
  no,   ///< the matrix as stored
  yes,  ///< the transposed matrix
};

/// For streams whose matrix products of floats may round their factors to bfloat16. Sums stay in float.
inline constexpr detail::RoundedProducts bfloat16_products{&detail::multiply_bfloat16};

/// Matrix products.
template <class Space>
struct Gemm : detail::NotIncluded<Space> {};

/// CPU version of the primary template.
template <>
struct Gemm<HostSpace> : detail::KernelTypes<HostSpace> {
  /// Computes C = alpha * op(A) op(B) + beta * C. Does not read C if beta is 0.
  /// @shape op(A) [m, k]   @shape op(B) [k, n]   @shape C [m, n]
  /// @determinism bitwise, for any number of threads
  /// @throws ShapeError if the shapes disagree; reports both
  /// @source direct from the definition, blocked so that the packed part of B stays in cache
  template <class Scalar>
  static void multiply(Stream stream, Scalar alpha, Matrix<Scalar const> a, Transpose a_transpose,
                       Matrix<Scalar const> b, Transpose b_transpose, Scalar beta, Matrix<Scalar> c) {
    multiply(stream, described(stream, alpha, a, a_transpose, b, b_transpose, beta, c));
  }

  /// Computes the described matrix product. Calls `epilogue(row, rows, column, columns)` for each part of C when it is
  /// complete and still in cache, on the thread that computed it.
  template <class Scalar>
  static void multiply(Stream stream, detail::GemmBlock<Scalar> const& all, detail::GemmEpilogue epilogue = {}) {
    auto const size = part(all.m, all.n, stream.pool().threads());
    Index const rows = (all.m + size[0] - 1) / size[0], columns = (all.n + size[1] - 1) / size[1];
    stream.pool().run(rows * columns, [&](Index task) {
      Index const row = task / columns * size[0], column = task % columns * size[1];
      auto block = all;
      block.m = std::min(size[0], all.m - row);
      block.n = std::min(size[1], all.n - column);
      block.a = all.a.at(row, 0);
      block.b = all.b.at(0, column);
      block.c += row * all.c_row + column;
      if (block.bias) block.bias += column;
      detail::multiply_on_this_thread(block,
                                      [&](Index i, Index m, Index j, Index n) { epilogue(row + i, m, column + j, n); });
    });
  }

  /// Checks the shapes and returns the matrix product as a block.
  template <class Scalar>
  [[nodiscard]] static detail::GemmBlock<Scalar> described(Stream stream, Scalar alpha, Matrix<Scalar const> a,
                                                           Transpose a_transpose, Matrix<Scalar const> b,
                                                           Transpose b_transpose, Scalar beta, Matrix<Scalar> c) {
    auto const view = [](Matrix<Scalar const> x, Transpose transpose) {
      return transpose == Transpose::no ? detail::Strided<Scalar const>{x.data, x.extent[1], 1}
                                        : detail::Strided<Scalar const>{x.data, 1, x.extent[1]};
    };
    auto const rows = [](Matrix<Scalar const> x, Transpose t) { return x.extent[t == Transpose::no ? 0 : 1]; };
    auto const columns = [](Matrix<Scalar const> x, Transpose t) { return x.extent[t == Transpose::no ? 1 : 0]; };
    detail::GemmBlock<Scalar> block{.m = rows(a, a_transpose),
                                    .n = columns(b, b_transpose),
                                    .k = columns(a, a_transpose),
                                    .alpha = alpha,
                                    .a = view(a, a_transpose),
                                    .b = view(b, b_transpose),
                                    .beta = beta,
                                    .c = c.data,
                                    .c_row = c.extent[1],
                                    .bias = nullptr,
                                    .rounded = detail::RoundedProducts::of(stream)};
    expect<ShapeError>(block.k == rows(b, b_transpose) && c.extent[0] == block.m && c.extent[1] == block.n, [&] {
      return "Gemm: op(A) is " + to_string(Extents<2>{block.m, block.k}) + ", op(B) is " +
             to_string(Extents<2>{rows(b, b_transpose), block.n}) + " and C is " + to_string(c.extent) +
             "; A's columns must equal B's rows, and C must have A's rows and B's columns";
    });
    return block;
  }

 private:
  /// Returns the extent of the part of C that one task computes. Our own kernels sum each element in an order that only
  /// the depth k determines, so their parts may depend on the number of threads. A library's order may depend on the
  /// part's shape, so its parts have a fixed size.
  [[nodiscard]] static Extents<2> part(Index m, Index n, int threads) noexcept {
    if (detail::products_by_blas()) return {256, 256};
    if (threads == 1) return {std::max<Index>(1, m), std::max<Index>(1, n)};
    constexpr Index tasks_per_thread = 2, together = detail::row_block, columns_together = 256;
    auto const rows = (m + tasks_per_thread * threads - 1) / (tasks_per_thread * threads);
    return {std::max(together, (rows + together - 1) / together * together), columns_together};
  }
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/gemm/gemm.ipp>
#endif
