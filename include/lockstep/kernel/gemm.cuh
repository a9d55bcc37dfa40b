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

namespace lockstep::inline LOCKSTEP_ABI::kernel {
namespace detail {

/// c = beta * c + bias in every row; a null bias is none.
template <class T>
void scale_and_add(memory::Stream<CudaSpace> stream, Accumulate<T> beta, TensorView<T, 2, CudaSpace> c, T const* bias) {
  for_elements("kernel::Gemm", stream, c.size(), [=] __device__(Index i) {
    auto sum = bias ? static_cast<Accumulate<T>>(bias[i % c.extent[1]]) : Accumulate<T>{0};
    if (beta != 0) sum += beta * static_cast<Accumulate<T>>(c.data[i]);
    c.data[i] = static_cast<T>(sum);
  });
}

}  // namespace detail

/// Products by cuBLASLt, queued on the stream, which keeps handle, workspace and what was decided for each shape.
template <>
struct Gemm<CudaSpace> : detail::OfSpace<CudaSpace> {
  /// C = alpha * op(A) op(B) + beta * C + bias in every row. C is not read when beta is 0. Factors in bfloat16 may have
  /// a product in float.
  /// @shape op(A) [m, k]   @shape op(B) [k, n]   @shape C [m, n]   @shape bias [n], or a null one: none
  /// @determinism bitwise run to run, on one kind of GPU and version of cuBLASLt
  /// @throws ShapeError when the shapes disagree; says both sides
  /// @throws CudaError when cuBLASLt refuses the product
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
    // cuBLASLt knows no empty operands and no bias in double, and is told of no bias that is not aligned.
    bool const fused_bias =
        bias && k > 0 && !std::is_same_v<T, double> && reinterpret_cast<std::uintptr_t>(bias) % 16 == 0;
    if (k > 0)
      stream.kept<detail::LtProducts>().multiply(stream,
                                                 {detail::lt_type<T>, detail::lt_type<C>, a_turned, b_turned,
                                                  fused_bias, m, n, k, alignment(a.data, b.data, c.data)},
                                                 alpha, a.data, b.data, beta, c.data, fused_bias ? bias : nullptr);
    if (k == 0 || (bias && !fused_bias)) detail::scale_and_add<C>(stream, k > 0 ? Accumulate<T>{1} : beta, c, bias);
  }

  /// Times for each kind of product that the stream has made so far the algorithms that cuBLASLt offers, up to eight,
  /// on matrices of its own, and takes the fastest from here on. A kind whose matrices find no room on the device keeps
  /// the algorithm that it has. Waits for the stream.
  /// @returns the choices, for `take_choices` of other streams of such a GPU, and of runs to come
  /// @determinism not promised: two runs may choose differently, and differ in bits; the choices make them alike
  /// @throws CudaError
  [[nodiscard]] static std::string choose_by_time(Stream stream) {
    auto choices = stream.kept<detail::LtProducts>().choose_by_time(stream);
    stream.memory_moved();  // recorded products are those of before
    return choices.to_text();
  }
  /// Takes what `choose_by_time` returned, from here on; what was chosen on another kind of GPU or by another version
  /// of cuBLASLt is left alone, as are products of other kinds.
  /// @throws DataError when the text is none that `choose_by_time` returned
  static void take_choices(Stream stream, std::string const& choices) {
    stream.kept<detail::LtProducts>().take(detail::LtChoices::from_text(choices));
    stream.memory_moved();
  }

 private:
  /// The largest power of two up to 16 that divides all addresses: more changes no algorithm.
  [[nodiscard]] static std::uint32_t alignment(void const* a, void const* b, void const* c) noexcept {
    auto const bits = reinterpret_cast<std::uintptr_t>(a) | reinterpret_cast<std::uintptr_t>(b) |
                      reinterpret_cast<std::uintptr_t>(c) | 16;
    return static_cast<std::uint32_t>(bits & (~bits + 1));
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
