// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <type_traits>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/gemm/gemm.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

namespace detail {
struct LtProduct;
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
                       std::type_identity_t<Result> const* bias = nullptr);

  /// Matrices of equal shape at equal distances, in elements; a distance of 0 repeats the first matrix.
  template <class Scalar>
  struct Each {
    Matrix<Scalar> first;  ///< of the first product
    Index stride;          ///< elements between two matrices; 0 repeats the first
  };
  /// Vectors of equal length at equal distances, or none.
  template <class Scalar>
  struct EachVector {
    Scalar* first = nullptr;  ///< null: none
    Index stride = 0;         ///< elements between two vectors
  };
  /// Computes C = op(A) op(B) + beta * C for `count` products of equal shapes in one call. With `bias`, adds it to each
  /// row.
  /// @returns false without any work if cuBLASLt has no such kernel; compute the products one by one then
  template <class Scalar, class Result>
  [[nodiscard]] static bool try_multiply_each(Stream stream, Index count, Each<Scalar const> a, Transpose a_transpose,
                                              Each<Scalar const> b, Transpose b_transpose, Accumulate<Scalar> beta,
                                              Each<Result> c, EachVector<Result const> bias = {});

  /// Allows matrix products of floats on this stream to round their factors to TF32, which has 10 bits of fraction, for
  /// tensor cores; sums stay in float. Off by default. Products in other types do not change.
  static void allow_tf32(Stream stream, bool allow);

  /// Returns the version of cuBLASLt, such as 130101 for 13.1.1.
  [[nodiscard]] static Index library_version() noexcept;

  /// Times up to eight algorithms of cuBLASLt for each kind of matrix product that the stream has computed so far.
  /// Later products use the fastest. The measurement uses matrices of its own. A kind whose matrices do not fit into
  /// device memory keeps its algorithm. Waits for the stream.
  /// @returns the choices, for `take_choices` on other streams of such a GPU and in later runs; empty without products
  /// @determinism not promised: two runs may choose differently and differ in bits; equal choices make their results
  /// equal
  /// @throws CudaError
  [[nodiscard]] static std::string choose_by_time(Stream stream);
  /// Uses the choices that `choose_by_time` returned from then on. Ignores choices made on another kind of GPU or with
  /// another version of cuBLASLt. Products of other kinds keep their algorithm.
  /// @throws DataError if the text does not come from `choose_by_time`
  static void take_choices(Stream stream, std::string const& choices);

 private:
  template <class Scalar, class Result>
  [[nodiscard]] static detail::LtProduct described(Matrix<Scalar const> a, Transpose a_transpose,
                                                   Matrix<Scalar const> b, Transpose b_transpose, Matrix<Result> c);
  /// Whether cuBLASLt may get this bias.
  template <class Scalar>
  [[nodiscard]] static bool takes_bias(void const* bias) noexcept;
  /// Returns the largest power of two up to 16 that divides all addresses. A larger alignment changes no algorithm.
  [[nodiscard]] static std::uint32_t alignment(void const* a, void const* b, void const* c) noexcept;
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/gemm/gemm.icuh>
#endif
