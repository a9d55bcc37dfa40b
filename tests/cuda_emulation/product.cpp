// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <cublasLt.h>
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/float16.hpp>

namespace cuda_emulation {
namespace {

/// Factors have type T, the product has type C.
template <class T, class C>
void multiply_as(Product const& p) {
  using Sum = lockstep::Accumulate<T>;
  auto const& operation = p.operation;
  bool const rounds = operation.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  auto const at = [=](void const* x, cublasLtMatrixLayoutOpaque_t const& layout, cublasOperation_t turned,
                      std::int64_t product, std::uint64_t row, std::uint64_t column) {
    if (turned == CUBLAS_OP_T) std::swap(row, column);
    auto const value =
        static_cast<Sum>(static_cast<T const*>(x)[product * layout.batch_stride + static_cast<std::int64_t>(row) +
                                                  static_cast<std::int64_t>(column) * layout.stride]);
    if constexpr (std::is_same_v<T, float>)
      if (rounds) return std::bit_cast<float>((std::bit_cast<std::uint32_t>(value) + 0x1000u) & ~0x1fffu);
    return value;
  };
  auto const depth = operation.transpose_a == CUBLAS_OP_N ? p.a_layout.columns : p.a_layout.rows;
  auto const sum_over_depth = [&](auto const& term) {
    Sum sum = 0;
    for (std::uint64_t i = 0; i < depth; ++i) sum += term(p.algorithm.number == 0 ? i : depth - 1 - i);
    return sum;
  };
  auto const by = static_cast<Sum>(p.by), keep = static_cast<Sum>(p.keep);
  for (std::int64_t product = 0; product < p.d_layout.batch; ++product)
    for (std::uint64_t column = 0; column < p.d_layout.columns; ++column) {
      auto const* const bias = static_cast<C const*>(operation.bias) + product * operation.bias_stride;
      for (std::uint64_t row = 0; row < p.d_layout.rows; ++row) {
        Sum sum = by * sum_over_depth([&](std::uint64_t i) {
                    return at(p.a, p.a_layout, operation.transpose_a, product, row, i) *
                           at(p.b, p.b_layout, operation.transpose_b, product, i, column);
                  });
        auto& to = static_cast<C*>(p.d)[product * p.d_layout.batch_stride + static_cast<std::int64_t>(row) +
                                        static_cast<std::int64_t>(column) * p.d_layout.stride];
        if (keep != 0) sum += keep * static_cast<Sum>(to);
        if (operation.epilogue == CUBLASLT_EPILOGUE_BIAS) sum += static_cast<Sum>(bias[row]);
        to = static_cast<C>(sum);
      }
    }
}

template <class T>
void multiply_half(Product const& product) {
  product.d_layout.type == CUDA_R_32F ? multiply_as<T, float>(product) : multiply_as<T, T>(product);
}

}  // namespace

void multiply(Product const& product) {
  switch (product.a_layout.type) {
    case CUDA_R_64F:
      return multiply_as<double, double>(product);
    case CUDA_R_32F:
      return multiply_as<float, float>(product);
    case CUDA_R_16F:
      return multiply_half<lockstep::float16>(product);
    case CUDA_R_16BF:
      return multiply_half<lockstep::bfloat16>(product);
  }
}

}  // namespace cuda_emulation
