// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <type_traits>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/detail/launch.cuh>
#include <lockstep/kernel/detail/lt_products.cuh>
#include <lockstep/kernel/gemm.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {
namespace detail {

/// Computes c = beta * c + bias in each row; a null bias is skipped.
template <class T>
void scale_and_add(memory::Stream<CudaSpace> stream, Accumulate<T> beta, TensorView<T, 2, CudaSpace> c, T const* bias) {
  for_elements("kernel::Gemm", stream, c.size(), [=] __device__(Index i) {
    auto sum = bias ? static_cast<Accumulate<T>>(bias[i % c.extent[1]]) : Accumulate<T>{0};
    if (beta != 0) sum += beta * static_cast<Accumulate<T>>(c.data[i]);
    c.data[i] = static_cast<T>(sum);
  });
}

}  // namespace detail

/// Matrix products with cuBLASLt, queued on the stream. The stream keeps the handle, the workspace and the algorithm
/// chosen for each shape.
template <>
struct Gemm<CudaSpace> : detail::OfSpace<CudaSpace> {
  /// Computes C = alpha * op(A) op(B) + beta * C + bias in each row. Does not read C if beta is 0. Factors in bfloat16
  /// may have a result in float.
  /// @shape op(A) [m, k]   @shape op(B) [k, n]   @shape C [m, n]   @shape bias [n], or null for none
  /// @determinism bitwise run to run, on one kind of GPU and version of cuBLASLt
  /// @throws ShapeError if the shapes disagree; reports both
  /// @throws CudaError if cuBLASLt rejects the product
  template <class T, class C = T>
  static void multiply(Stream stream, Accumulate<T> alpha, Matrix<T const> a, Transpose a_transpose, Matrix<T const> b,
                       Transpose b_transpose, Accumulate<T> beta, Matrix<C> c,
                       std::type_identity_t<C> const* bias = nullptr) {
    bool const a_turned = a_transpose == Transpose::yes, b_turned = b_transpose == Transpose::yes;
    auto const m = a.extent[a_turned ? 1 : 0], k = a.extent[a_turned ? 0 : 1];
    auto const n = b.extent[b_turned ? 0 : 1], b_rows = b.extent[b_turned ? 1 : 0];
    expect<ShapeError>(k == b_rows && c.extent[0] == m && c.extent[1] == n, [&] {
      return "Gemm: op(A) is " + to_string(Extents<2>{m, k}) + ", op(B) is " + to_string(Extents<2>{b_rows, n}) +
             " and C is " + to_string(c.extent) +
             "; A's columns must equal B's rows, and C must have A's rows and B's columns";
    });
    if (c.empty()) return;
    // cuBLASLt accepts no empty operands and no bias in double, and gets no unaligned bias.
    bool const fused_bias =
        bias && k > 0 && !std::is_same_v<T, double> && reinterpret_cast<std::uintptr_t>(bias) % 16 == 0;
    if (k > 0) {
      stream.kept<detail::LtProducts>().multiply(stream,
                                                 {detail::lt_type<T>, detail::lt_type<C>, a_turned, b_turned,
                                                  fused_bias, m, n, k, alignment(a.data, b.data, c.data)},
                                                 alpha, a.data, b.data, beta, c.data, fused_bias ? bias : nullptr);
      ++stream.queued().kernels;
      stream.queued().add_products(2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k),
                                   sizeof(T));
    }
    if (k == 0 || (bias && !fused_bias)) detail::scale_and_add<C>(stream, k > 0 ? Accumulate<T>{1} : beta, c, bias);
  }

  /// Times up to eight algorithms of cuBLASLt for each kind of matrix product that the stream has computed so far.
  /// Later products use the fastest. The measurement uses matrices of its own. A kind whose matrices do not fit into
  /// device memory keeps its algorithm. Waits for the stream.
  /// @returns the choices, for `take_choices` on other streams of such a GPU and in later runs
  /// @determinism not promised: two runs may choose differently and differ in bits; equal choices make their results
  /// equal
  /// @throws CudaError
  [[nodiscard]] static std::string choose_by_time(Stream stream) {
    auto choices = stream.kept<detail::LtProducts>().choose_by_time(stream);
    stream.memory_moved();  // the recorded products use the old algorithms
    return choices.to_text();
  }
  /// Uses the choices that `choose_by_time` returned from then on. Ignores choices made on another kind of GPU or with
  /// another version of cuBLASLt. Products of other kinds keep their algorithm.
  /// @throws DataError if the text does not come from `choose_by_time`
  static void take_choices(Stream stream, std::string const& choices) {
    stream.kept<detail::LtProducts>().take(detail::LtChoices::from_text(choices));
    stream.memory_moved();
  }

 private:
  /// Returns the largest power of two up to 16 that divides all addresses. A larger alignment changes no algorithm.
  [[nodiscard]] static std::uint32_t alignment(void const* a, void const* b, void const* c) noexcept {
    auto const bits = reinterpret_cast<std::uintptr_t>(a) | reinterpret_cast<std::uintptr_t>(b) |
                      reinterpret_cast<std::uintptr_t>(c) | 16;
    return static_cast<std::uint32_t>(bits & (~bits + 1));
  }
};

}}}  // namespace lockstep::kernel
