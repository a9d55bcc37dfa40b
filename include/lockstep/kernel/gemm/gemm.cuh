// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/detail/launch.cuh>
#include <lockstep/kernel/gemm/detail/lt_products.cuh>
#include <lockstep/kernel/gemm/gemm.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {
namespace detail {

/// Computes c = beta * c + bias in each row; a null bias is skipped.
template <class Scalar>
void scale_and_add(memory::Stream<CudaSpace> stream, Accumulate<Scalar> beta, TensorView<Scalar, 2, CudaSpace> c,
                   Scalar const* bias) {
  for_elements("kernel::Gemm", stream, c.size(), [=] __device__(Index i) {
    auto sum = bias ? static_cast<Accumulate<Scalar>>(bias[i % c.extent[1]]) : Accumulate<Scalar>{0};
    if (beta != 0) sum += beta * static_cast<Accumulate<Scalar>>(c.data[i]);
    c.data[i] = static_cast<Scalar>(sum);
  });
}

}  // namespace detail

/// Matrix products with cuBLASLt, queued on the stream. The stream keeps the handle, the workspace and the algorithm
/// chosen for each shape.
template <>
struct Gemm<CudaSpace> : detail::KernelTypes<CudaSpace> {
  /// Computes C = alpha * op(A) op(B) + beta * C + bias in each row. Does not read C if beta is 0. Factors in bfloat16
  /// may have a result in float. cuBLASLt sums in float and rounds a 16-bit result; with both beta and bias, it may
  /// also round the sum before the bias.
  /// @shape op(A) [m, k]   @shape op(B) [k, n]   @shape C [m, n]   @shape bias [n], or null for none
  /// @determinism bitwise run to run, on one kind of GPU and version of cuBLASLt
  /// @throws ShapeError if the shapes disagree; reports both
  /// @throws CudaError if cuBLASLt rejects the product
  template <class Scalar, class Result = Scalar>
  static void multiply(Stream stream, Accumulate<Scalar> alpha, Matrix<Scalar const> a, Transpose a_transpose,
                       Matrix<Scalar const> b, Transpose b_transpose, Accumulate<Scalar> beta, Matrix<Result> c,
                       std::type_identity_t<Result> const* bias = nullptr) {
    auto kind = described(a, a_transpose, b, b_transpose, c);
    if (c.empty()) return;
    // cuBLASLt accepts no empty operands and no bias in double, and gets no unaligned bias.
    bool const fused_bias = bias && kind.k > 0 && takes_bias<Scalar>(bias);
    kind.with_bias = fused_bias;
    if (kind.k > 0)
      stream.persistent<detail::LtProducts>().multiply(stream, kind, alpha, a.data, b.data, beta, c.data,
                                                       fused_bias ? bias : nullptr);
    if (kind.k == 0 || (bias && !fused_bias))
      detail::scale_and_add<Result>(stream, kind.k > 0 ? Accumulate<Scalar>{1} : beta, c, bias);
  }

  /// Matrices of equal shape at equal distances, in elements; a distance of 0 repeats the first matrix.
  template <class Scalar>
  struct Each {
    Matrix<Scalar> first;
    Index stride;
  };
  /// Vectors of equal length at equal distances, or none.
  template <class Scalar>
  struct EachVector {
    Scalar* first = nullptr;
    Index stride = 0;
  };
  /// Computes C = op(A) op(B) + beta * C for `count` products of equal shapes in one call. With `bias`, adds it to each
  /// row.
  /// @returns false without any work if cuBLASLt has no such kernel; compute the products one by one then
  template <class Scalar, class Result>
  [[nodiscard]] static bool try_multiply_each(Stream stream, Index count, Each<Scalar const> a, Transpose a_transpose,
                                              Each<Scalar const> b, Transpose b_transpose, Accumulate<Scalar> beta,
                                              Each<Result> c, EachVector<Result const> bias = {}) {
    auto kind = described(a.first, a_transpose, b.first, b_transpose, c.first);
    if (c.first.empty() || kind.k == 0 || a.stride < 0 || b.stride < 0 || c.stride < 0) return false;
    kind.with_bias = bias.first != nullptr;
    if (bias.first &&
        (bias.stride < 0 || !takes_bias<Scalar>(bias.first) || !takes_bias<Scalar>(bias.first + bias.stride)))
      return false;
    kind.batch = {count, a.stride, b.stride, c.stride, bias.stride};
    kind.alignment =
        std::min(kind.alignment, alignment(a.first.data + a.stride, b.first.data + b.stride, c.first.data + c.stride));
    return stream.persistent<detail::LtProducts>().try_multiply<Scalar, Result>(
        stream, kind, 1, a.first.data, b.first.data, beta, c.first.data, bias.first);
  }

  /// Allows matrix products of floats on this stream to round their factors to TF32, which has 10 bits of fraction, for
  /// tensor cores; sums stay in float. Off by default. Products in other types do not change.
  static void allow_tf32(Stream stream, bool allow) {
    stream.persistent<detail::LtProducts>().allow_tf32(allow);
    stream.memory_moved();  // recorded products keep their arithmetic
  }

  /// Times up to eight algorithms of cuBLASLt for each kind of matrix product that the stream has computed so far.
  /// Later products use the fastest. The measurement uses matrices of its own. A kind whose matrices do not fit into
  /// device memory keeps its algorithm. Waits for the stream.
  /// @returns the choices, for `take_choices` on other streams of such a GPU and in later runs
  /// @determinism not promised: two runs may choose differently and differ in bits; equal choices make their results
  /// equal
  /// @throws CudaError
  [[nodiscard]] static std::string choose_by_time(Stream stream) {
    auto choices = stream.persistent<detail::LtProducts>().choose_by_time(stream);
    stream.memory_moved();  // the recorded products use the old algorithms
    return choices.to_text();
  }
  /// Uses the choices that `choose_by_time` returned from then on. Ignores choices made on another kind of GPU or with
  /// another version of cuBLASLt. Products of other kinds keep their algorithm.
  /// @throws DataError if the text does not come from `choose_by_time`
  static void take_choices(Stream stream, std::string const& choices) {
    stream.persistent<detail::LtProducts>().take(detail::LtChoices::from_text(choices));
    stream.memory_moved();
  }

 private:
  template <class Scalar, class Result>
  [[nodiscard]] static detail::LtProduct described(Matrix<Scalar const> a, Transpose a_transpose,
                                                   Matrix<Scalar const> b, Transpose b_transpose, Matrix<Result> c) {
    bool const a_turned = a_transpose == Transpose::yes, b_turned = b_transpose == Transpose::yes;
    auto const m = a.extent[a_turned ? 1 : 0], k = a.extent[a_turned ? 0 : 1];
    auto const n = b.extent[b_turned ? 0 : 1], b_rows = b.extent[b_turned ? 1 : 0];
    expect<ShapeError>(k == b_rows && c.extent[0] == m && c.extent[1] == n, [&] {
      return "Gemm: op(A) is " + to_string(Extents<2>{m, k}) + ", op(B) is " + to_string(Extents<2>{b_rows, n}) +
             " and C is " + to_string(c.extent) +
             "; A's columns must equal B's rows, and C must have A's rows and B's columns";
    });
    return {detail::lt_type<Scalar>,          detail::lt_type<Result>, a_turned, b_turned, false, m, n, k,
            alignment(a.data, b.data, c.data)};
  }
  /// Whether cuBLASLt may get this bias.
  template <class Scalar>
  [[nodiscard]] static bool takes_bias(void const* bias) noexcept {
    return !std::is_same_v<Scalar, double> && reinterpret_cast<std::uintptr_t>(bias) % 16 == 0;
  }
  /// Returns the largest power of two up to 16 that divides all addresses. A larger alignment changes no algorithm.
  [[nodiscard]] static std::uint32_t alignment(void const* a, void const* b, void const* c) noexcept {
    auto const bits = reinterpret_cast<std::uintptr_t>(a) | reinterpret_cast<std::uintptr_t>(b) |
                      reinterpret_cast<std::uintptr_t>(c) | 16;
    return static_cast<std::uint32_t>(bits & (~bits + 1));
  }
};

}}}  // namespace lockstep::kernel
