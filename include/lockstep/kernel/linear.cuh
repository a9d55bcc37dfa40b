// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/detail/launch.cuh>
#include <lockstep/kernel/detail/mask_bits.cuh>
#include <lockstep/kernel/detail/normal_distribution.cuh>
#include <lockstep/kernel/detail/product.cuh>
#include <lockstep/kernel/detail/sum_columns.cuh>
#include <lockstep/kernel/gelu.cuh>
#include <lockstep/kernel/gemm.cuh>
#include <lockstep/kernel/linear.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel {
namespace detail {
inline namespace LOCKSTEP_CUDA_ABI {

/// y = dropout(f(h)), slope = dropout(f'(h)); h is slope, or y where slope is null. A thread takes 8 channels of a row:
/// one block of random bits where rows begin on multiples of 8.
template <class T, Activation activation>
LOCKSTEP_CUDA_KERNEL void activate_rows(RowDropout<CudaSpace> dropout, Index rows, Index width, T* y, T* slope) {
  using Sum = Accumulate<T>;
  auto const groups = (width + 7) / 8;
  bool const drops = dropout.mask.active();
  auto const scale = static_cast<Sum>(dropout.mask.scale());
  for (auto i = grid_thread(); i < rows * groups; i += grid_threads()) {
    auto const row = i / groups, first = i % groups * 8, last = min(first + 8, width);
    MaskBits bits(dropout.mask, drops ? static_cast<Index>(dropout.position(row)) : 0);
    auto const element = drops ? static_cast<Index>(dropout.element(row, width, 0)) : 0;
    for (auto c = first; c < last; ++c) {
      auto const at = row * width + c;
      auto const h = static_cast<Sum>(slope ? slope[at] : y[at]);
      Sum const factor = !drops ? Sum{1} : bits.keeps(element + c) ? scale : Sum{0};
      if constexpr (activation != Activation::gelu) {
        y[at] = static_cast<T>(product(activation == Activation::relu && h < 0 ? Sum{0} : h, factor));
      } else {
        auto const normal = device_normal_distribution(h);
        y[at] = static_cast<T>(product(h * normal.integral, factor));
        if (slope) slope[at] = static_cast<T>(product(gelu_slope(h, normal), factor));
      }
    }
  }
}

}  // namespace LOCKSTEP_CUDA_ABI
}  // namespace detail

/// Functions and shapes as on the host, queued on the stream; products by cuBLASLt. In bfloat16 the factors are of that
/// type, also weight and bias; gradients of parameters are float.
/// @determinism as Gemm's; the bias's gradient bitwise
template <>
struct Linear<CudaSpace> {
  using Stream = memory::Stream<CudaSpace>;
  template <class T>
  using Matrix = TensorView<T, 2, CudaSpace>;
  template <class T>
  using Vector = TensorView<T, 1, CudaSpace>;

  template <class T>
  static void forward(Stream stream, Matrix<T const> x, Matrix<T const> weight, Vector<T const> bias, Matrix<T> y) {
    expect<ShapeError>(!bias.data || bias.extent[0] == weight.extent[0], [&] {
      return "Linear: weight is " + to_string(weight.extent) + " and bias is " + to_string(bias.extent) +
             "; bias needs one element per row of weight";
    });
    Gemm<CudaSpace>::multiply<T>(stream, 1, x, Transpose::no, weight, Transpose::yes, 0, y, bias.data);
  }

  template <class T>
  static void forward(Stream stream, Matrix<T const> x, Matrix<T const> weight, Vector<T const> bias,
                      Activation activation, RowDropout<CudaSpace> dropout, Matrix<T> y, Matrix<T> slope) {
    bool const gelu = activation == Activation::gelu;
    auto* const slopes = gelu ? slope.data : nullptr;
    forward(stream, x, weight, bias, slopes ? slope : y);
    if (activation == Activation::none && !dropout.mask.active()) return;
    detail::launch("kernel::Linear::forward", stream, y.extent[0] * ((y.extent[1] + 7) / 8),
                   gelu                             ? detail::activate_rows<T, Activation::gelu>
                   : activation == Activation::relu ? detail::activate_rows<T, Activation::relu>
                                                    : detail::activate_rows<T, Activation::none>,
                   dropout, y.extent[0], y.extent[1], y.data, slopes);
  }

  template <class T>
  static void forward_gelu(Stream stream, Matrix<T const> x, Matrix<T const> weight, Vector<T const> bias, Matrix<T> h,
                           Matrix<T> y) {
    forward(stream, x, weight, bias, h);
    Extents<1> const flat{h.size()};
    Gelu<CudaSpace>::template forward<T>(stream, h.reshape(flat), y.reshape(flat));
  }
  /// All: several launches cost more than memory that is not read from near.
  [[nodiscard]] static Index rows_together(Stream, Index rows) noexcept { return rows; }

  [[nodiscard]] static Index partial_elements(Stream, Index rows, Index, Index outputs) noexcept {
    return detail::column_partials(rows, outputs);
  }

  template <class T>
  static void backward(Stream stream, Matrix<T const> dy, Matrix<T const> x, Matrix<T const> weight,
                       Slope<T, CudaSpace> slope, Matrix<T> dx, Write dx_write, Matrix<Accumulate<T>> dweight,
                       Write dweight_write, Vector<Accumulate<T>> dbias, Write dbias_write, Accumulate<T>* partial) {
    using Sum = Accumulate<T>;
    auto const beta = [](Write write) { return write == Write::add ? Sum{1} : Sum{0}; };
    if (dx.data) {
      Gemm<CudaSpace>::multiply<T>(stream, 1, dy, Transpose::no, weight, Transpose::no,
                                   slope.given() ? Sum{0} : beta(dx_write), dx);
      if (slope.factors.data) {
        detail::for_elements("kernel::Linear::backward", stream, dx.size(), [=] __device__(Index i) {
          dx.data[i] = static_cast<T>(dx.data[i] * slope.factors.data[i]);
        });
      } else if (slope.given()) {
        detail::for_elements("kernel::Linear::backward", stream, dx.size(), [=] __device__(Index i) {
          dx.data[i] = x.data[i] <= T(0) ? T(0) : static_cast<T>(dx.data[i] * slope.positive);
        });
      }
    }
    Gemm<CudaSpace>::multiply<T>(stream, 1, dy, Transpose::yes, x, Transpose::no, beta(dweight_write), dweight);
    if (!dbias.data) return;
    detail::sum_columns<Sum, 1>("kernel::Linear::backward", stream, dy.extent[0], dy.extent[1],
                                [=] __device__(Index row, Index column, Sum * sums) {
                                  sums[0] += static_cast<Sum>(dy.data[row * dy.extent[1] + column]);
                                },
                                partial, {dbias.data, dbias_write});
  }

  [[nodiscard]] static Index again_elements(Stream, Index rows, Index inputs) noexcept { return rows * inputs; }

  template <class T>
  static void backward_through_gelu(Stream stream, Matrix<T const> dy, Matrix<T> h, Matrix<T const> weight,
                                    Matrix<Accumulate<T>> dweight, Write dweight_write, Vector<Accumulate<T>> dbias,
                                    Write dbias_write, Accumulate<T>* partial, T* again) {
    Matrix<T> const x{again, h.extent};
    Extents<1> const flat{h.size()};
    auto const before = h.reshape(flat), there = x.reshape(flat);
    Gelu<CudaSpace>::template forward<T>(stream, before, there, before);
    backward<T>(stream, dy, x, weight, {}, {}, Write::overwrite, dweight, dweight_write, dbias, dbias_write, partial);
    // x has been read: what is to be multiplied by the slope takes its place.
    Gemm<CudaSpace>::template multiply<T>(stream, 1, dy, Transpose::no, weight, Transpose::no, 0, x);
    Gelu<CudaSpace>::template backward<T>(stream, there, before, before, Write::overwrite);
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
