// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/detail/gemm_dispatch.hpp>
#include <lockstep/memory/stream.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel {

enum class Transpose {
  no,   ///< the matrix as it lies
  yes,  ///< its columns are the operand's rows
};

/// Matrix products.
template <class Space>
struct Gemm {
  static_assert(sizeof(Space) == 0, "Lockstep: Gemm in this space needs lockstep/cuda.cuh, compiled with nvcc");
};

template <>
struct Gemm<HostSpace> {
  using Stream = memory::Stream<HostSpace>;
  template <class T>
  using Matrix = TensorView<T, 2, HostSpace>;

  /// The steps of k that one partial sum covers: fixed, so that no bit depends on the number of threads.
  static constexpr Index task_depth = 512;

  /// C = alpha * op(A) op(B) + beta * C. C is not read when beta is 0.
  /// @shape op(A) [m, k]   @shape op(B) [k, n]   @shape C [m, n]
  /// @determinism bitwise, for any number of threads
  /// @throws ShapeError when the shapes disagree; says both numbers
  /// @source direct from the definition, blocked so that the packed part of B stays in cache
  template <class T>
  static void multiply(Stream stream, T alpha, Matrix<T const> a, Transpose a_transpose, Matrix<T const> b,
                       Transpose b_transpose, T beta, Matrix<T> c) {
    multiply(stream, described(alpha, a, a_transpose, b, b_transpose, beta, c), detail::Nothing{});
  }

  /// The same product; `done(row, rows, column, columns)` follows each part of C as soon as it is complete and still in
  /// cache, on the thread that made it.
  template <class T, class Done>
  static void multiply(Stream stream, detail::GemmBlock<T> const& all, Done&& done) {
    run_tasks(stream, all, 1, [&](detail::GemmBlock<T> const& block, Index, Index row, Index column) {
      detail::multiply_on_this_thread(
          block, [&](Index i, Index rows, Index j, Index columns) { done(row + i, rows, column + j, columns); });
    });
  }

  /// How many elements `multiply_deep` needs for its partial sums.
  [[nodiscard]] static constexpr Index partial_elements(Index m, Index n, Index k) noexcept {
    return k <= task_depth ? 0 : parts(k) * m * n;
  }

  /// The same product for k far above m and n, such as a weight's gradient over all tokens: k is shared out too. Its
  /// parts are summed in order.
  /// @shape partial [partial_elements(m, n, k)], overwritten
  template <class T>
  static void multiply_deep(Stream stream, T alpha, Matrix<T const> a, Transpose a_transpose, Matrix<T const> b,
                            Transpose b_transpose, T beta, Matrix<T> c, T* partial) {
    auto const all = described(alpha, a, a_transpose, b, b_transpose, beta, c);
    auto const depths = parts(all.k), size = all.m * all.n;
    if (depths <= 1) return multiply(stream, all, detail::Nothing{});
    run_tasks(stream, all, depths, [&](detail::GemmBlock<T> block, Index depth, Index row, Index column) {
      block.beta = 0;
      block.c = partial + depth * size + row * all.n + column;
      detail::multiply_on_this_thread(block);
    });
    stream.pool().for_ranges(size, 4096, [&](Index begin, Index end) {
      auto* const sum = c.data;
      with_best_instructions([sum, partial, begin, end, depths, size, beta] {
        for (Index i = begin; i < end; ++i) sum[i] = partial[i] + (beta != 0 ? beta * sum[i] : T(0));
        for (Index part = 1; part < depths; ++part)
          for (Index i = begin; i < end; ++i) sum[i] += partial[part * size + i];
      });
    });
  }

  /// The product as a block, its shapes checked.
  template <class T>
  [[nodiscard]] static detail::GemmBlock<T> described(T alpha, Matrix<T const> a, Transpose a_transpose,
                                                      Matrix<T const> b, Transpose b_transpose, T beta, Matrix<T> c) {
    auto const view = [](Matrix<T const> x, Transpose transpose) {
      return transpose == Transpose::no ? detail::Strided<T const>{x.data, x.extent[1], 1}
                                        : detail::Strided<T const>{x.data, 1, x.extent[1]};
    };
    auto const rows = [](Matrix<T const> x, Transpose t) { return x.extent[t == Transpose::no ? 0 : 1]; };
    auto const columns = [](Matrix<T const> x, Transpose t) { return x.extent[t == Transpose::no ? 1 : 0]; };
    detail::GemmBlock<T> block{.m = rows(a, a_transpose),
                               .n = columns(b, b_transpose),
                               .k = columns(a, a_transpose),
                               .alpha = alpha,
                               .a = view(a, a_transpose),
                               .b = view(b, b_transpose),
                               .beta = beta,
                               .c = c.data,
                               .c_row = c.extent[1],
                               .bias = nullptr};
    expect<ShapeError>(block.k == rows(b, b_transpose) && c.extent[0] == block.m && c.extent[1] == block.n, [&] {
      return "Gemm: op(A) is " + to_string(Extents<2>{block.m, block.k}) + ", op(B) is " +
             to_string(Extents<2>{rows(b, b_transpose), block.n}) + " and C is " + to_string(c.extent) +
             "; A's columns must equal B's rows, and C must have A's rows and B's columns";
    });
    return block;
  }

 private:
  [[nodiscard]] static constexpr Index parts(Index k) noexcept { return (k + task_depth - 1) / task_depth; }

  /// The part of C that one task computes. Our own products sum each element in an order that its depth alone fixes, so
  /// that their parts may follow the number of threads; a library's order may depend on the part's shape.
  [[nodiscard]] static Extents<2> part(Index m, Index n, int threads) noexcept {
    if (detail::products_by_blas()) return {256, 256};
    if (threads == 1) return {std::max<Index>(1, m), std::max<Index>(1, n)};
    constexpr Index tasks_per_thread = 2, together = detail::rows_together, columns_together = 256;
    auto const rows = (m + tasks_per_thread * threads - 1) / (tasks_per_thread * threads);
    return {std::max(together, (rows + together - 1) / together * together), columns_together};
  }

  /// Calls run(block, depth, row, column) for every part of the product, spread over the pool.
  template <class T, class Run>
  static void run_tasks(Stream stream, detail::GemmBlock<T> const& all, Index depths, Run&& run) {
    auto const size = part(all.m, all.n, stream.pool().threads());
    Index const part_rows = size[0], part_columns = size[1];
    Index const rows = (all.m + part_rows - 1) / part_rows, columns = (all.n + part_columns - 1) / part_columns;
    stream.pool().run(depths * rows * columns, [&](Index task) {
      Index const depth = task / (rows * columns);
      Index const row = task / columns % rows * part_rows, column = task % columns * part_columns;
      auto block = all;
      block.m = std::min(part_rows, all.m - row);
      block.n = std::min(part_columns, all.n - column);
      if (depths > 1) block.k = std::min(task_depth, all.k - depth * task_depth);
      block.a = all.a.at(row, depth * task_depth);
      block.b = all.b.at(depth * task_depth, column);
      block.c += row * all.c_row + column;
      if (block.bias) block.bias += column;
      run(block, depth, row, column);
    });
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
