// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/detail/sum_columns.cuh>
#include <lockstep/kernel/detail/vectorized_access.cuh>
#include <lockstep/kernel/elementwise/channel_bias.cuh>
#include <lockstep/kernel/elementwise/elementwise.cuh>
#include <lockstep/kernel/gemm/gemm.cuh>
#include <lockstep/kernel/linear/detail/activate_rows.cuh>
#include <lockstep/kernel/linear/linear.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version with the host's functions and shapes, queued on the stream. cuBLASLt computes the matrix products. In
/// bfloat16, all factors have that type, including weight and bias; the parameters' gradients are float. Kernels of
/// Lockstep's own sum the bias's gradient.
/// @determinism as for Gemm
template <>
struct Linear<CudaSpace> : detail::KernelTypes<CudaSpace> {
  template <class Scalar>
  static void forward(Stream stream, Matrix<Scalar const> x, Matrix<Scalar const> weight, Vector<Scalar const> bias,
                      Matrix<Scalar> y) {
    expect<ShapeError>(!bias.data || bias.extent[0] == weight.extent[0], [&] {
      return "Linear: weight is " + to_string(weight.extent) + " and bias is " + to_string(bias.extent) +
             "; bias needs one element per row of weight";
    });
    Gemm<CudaSpace>::multiply<Scalar>(stream, 1, x, Transpose::no, weight, Transpose::yes, 0, y, bias.data);
  }

  template <class Scalar>
  static void forward(Stream stream, Matrix<Scalar const> x, Matrix<Scalar const> weight, Vector<Scalar const> bias,
                      Activation activation, RowDropout<CudaSpace> dropout, Matrix<Scalar> y, Matrix<Scalar> slope) {
    bool const gelu = activation == Activation::gelu;
    auto* const slopes = gelu ? slope.data : nullptr;
    forward(stream, x, weight, bias, slopes ? slope : y);
    if (activation == Activation::none && !dropout.mask.active()) return;
    detail::queue_activation<Scalar>(stream, activation, dropout, y.extent[0], y.extent[1], y.data, slopes);
  }

  template <class Scalar>
  static void forward_gelu(Stream stream, Matrix<Scalar const> x, Matrix<Scalar const> weight,
                           Vector<Scalar const> bias, Matrix<Scalar> h, Matrix<Scalar> y) {
    forward(stream, x, weight, bias, h);
    Extents<1> const flat{h.size()};
    Elementwise<CudaSpace>::template forward<Gelu, Scalar>(stream, h.reshape(flat), y.reshape(flat));
  }
  /// Returns all rows: several launches cost more than reads from outside the cache.
  [[nodiscard]] static Index rows_per_pass(Stream, Index rows) noexcept { return rows; }

  [[nodiscard]] static Index partial_elements(Stream, Index rows, Index, Index outputs) noexcept {
    return ChannelBias<CudaSpace>::partial_elements(rows, outputs);
  }

  template <class Scalar>
  static void backward(Stream stream, Matrix<Scalar const> dy, Matrix<Scalar const> x, Matrix<Scalar const> weight,
                       ActivationSlope<Scalar, CudaSpace> slope, Matrix<Scalar> dx, Write dx_write,
                       Matrix<Accumulate<Scalar>> dweight, Write dweight_write, Vector<Accumulate<Scalar>> dbias,
                       Write dbias_write, Accumulate<Scalar>* partial) {
    using Sum = Accumulate<Scalar>;
    auto const beta = [](Write write) { return write == Write::add ? Sum{1} : Sum{0}; };
    if (dx.data) {
      Gemm<CudaSpace>::multiply<Scalar>(stream, 1, dy, Transpose::no, weight, Transpose::no,
                                        slope.given() ? Sum{0} : beta(dx_write), dx);
      auto const name = "kernel::Linear::backward";
      if (slope.factors.data) {
        detail::for_vectorized<Scalar>(name, stream, dx.size(),
                                       [=] __device__(detail::WidestAccess<Scalar> const& access) {
                                         detail::AccessNumbers<Scalar> slopes;
                                         access.load_as(slope.factors.data, slopes);
                                         access.multiply(dx.data, slopes);
                                       });
      } else if (slope.given()) {
        detail::for_vectorized<Scalar>(
            name, stream, dx.size(), [=] __device__(detail::WidestAccess<Scalar> const& access) {
              detail::AccessNumbers<Scalar> gradients, inputs;
              access.load_as(dx.data, gradients);
              access.load_as(x.data, inputs);
              for (int j = 0; j < access.size; ++j)
                gradients[j] = inputs[j] <= Sum{0} ? Sum{0} : static_cast<Sum>(gradients[j] * slope.positive);
              access.put(gradients, dx.data);
            });
      }
    }
    Gemm<CudaSpace>::multiply<Scalar>(stream, 1, dy, Transpose::yes, x, Transpose::no, beta(dweight_write), dweight);
    if (dbias.data) ChannelBias<CudaSpace>::backward<Scalar>(stream, dy, dbias, dbias_write, partial);
  }

  /// Computes y_i = x weight_i^T + bias_i for several layers of equal shapes, in one matrix product if their parameters
  /// are stored at equal distances. Biases are all null or all given.
  /// @shape y [layers * rows, outputs]: the results one after the other
  template <class Scalar, std::size_t layers>
  static void forward_each(Stream stream, Matrix<Scalar const> x,
                           std::array<Matrix<Scalar const>, layers> const& weights,
                           std::array<Vector<Scalar const>, layers> const& biases, Matrix<Scalar> y) {
    using Product = Gemm<CudaSpace>;
    auto const part = parts<layers>(y);
    auto const weight_stride = stride_of(weights), bias_stride = stride_of(biases);
    if (weight_stride && bias_stride &&
        Product::try_multiply_each<Scalar, Scalar>(stream, layers, {x, 0}, Transpose::no, {weights[0], *weight_stride},
                                                   Transpose::yes, 0, {part[0], part[0].size()},
                                                   {biases[0].data, *bias_stride}))
      return;
    for (std::size_t i = 0; i < layers; ++i) forward<Scalar>(stream, x, weights[i], biases[i], part[i]);
  }

  /// Computes `backward` for layers whose outputs `forward_each` computed: dx is the sum of their gradients, in order.
  /// Biases are all null or all given.
  /// @shape dy [layers * rows, outputs]   @shape partial [layers * partial_elements], overwritten
  template <class Scalar, std::size_t layers>
  static void backward_each(Stream stream, Matrix<Scalar const> dy, Matrix<Scalar const> x,
                            std::array<Matrix<Scalar const>, layers> const& weights, Matrix<Scalar> dx, Write dx_write,
                            std::array<Matrix<Accumulate<Scalar>>, layers> const& dweights,
                            std::array<Write, layers> const& dweight_writes,
                            std::array<Vector<Accumulate<Scalar>>, layers> const& dbiases,
                            std::array<Write, layers> const& dbias_writes, Accumulate<Scalar>* partial) {
    using Sum = Accumulate<Scalar>;
    using Product = Gemm<CudaSpace>;
    auto const part = parts<layers>(dy);
    if (dx.data)
      for (std::size_t i = 0; i < layers; ++i)
        Product::multiply<Scalar>(stream, 1, part[i], Transpose::no, weights[i], Transpose::no,
                                  i > 0 || dx_write == Write::add ? Sum{1} : Sum{0}, dx);
    bool together = false;
    // The sums over rows are long. In float, cuBLASLt's heuristics split them in single products only (on an H200).
    if constexpr (sizeof(Scalar) == 2) {
      auto const all = [&](Write write) { return std::ranges::count(dweight_writes, write) == Index{layers}; };
      bool const adds = all(Write::add);
      auto const stride = stride_of(dweights);
      together =
          stride && (adds || all(Write::overwrite)) &&
          Product::try_multiply_each<Scalar, Sum>(stream, layers, {part[0], part[0].size()}, Transpose::yes, {x, 0},
                                                  Transpose::no, adds ? Sum{1} : Sum{0}, {dweights[0], *stride});
    }
    for (std::size_t i = 0; i < layers && !together; ++i)
      Product::multiply<Scalar>(stream, 1, part[i], Transpose::yes, x, Transpose::no,
                                dweight_writes[i] == Write::add ? Sum{1} : Sum{0}, dweights[i]);
    if (!dbiases[0].data) return;
    auto const target = [&](std::size_t i) {
      return i < layers ? detail::ColumnTarget<Sum>{dbiases[i].data, dbias_writes[i]} : detail::ColumnTarget<Sum>{};
    };
    detail::sum_matrix_columns<Scalar, layers>("kernel::Linear::backward_each", stream, part[0].extent[0], dy.extent[1],
                                               dy.data, partial, target(0), target(1), target(2));
  }

  [[nodiscard]] static Index recomputed_elements(Stream, Index rows, Index inputs) noexcept { return rows * inputs; }

  template <class Scalar>
  static void backward_through_gelu(Stream stream, Matrix<Scalar const> dy, Matrix<Scalar> h,
                                    Matrix<Scalar const> weight, Matrix<Accumulate<Scalar>> dweight,
                                    Write dweight_write, Vector<Accumulate<Scalar>> dbias, Write dbias_write,
                                    Accumulate<Scalar>* partial, Scalar* recomputed) {
    Matrix<Scalar> const x{recomputed, h.extent};
    Extents<1> const flat{h.size()};
    auto const before = h.reshape(flat), activated = x.reshape(flat);
    Elementwise<CudaSpace>::template forward<Gelu, Scalar>(stream, before, activated, before);
    backward<Scalar>(stream, dy, x, weight, {}, {}, Write::overwrite, dweight, dweight_write, dbias, dbias_write,
                     partial);
    // x is no longer needed: dy weight, which the slope multiplies, overwrites it.
    Gemm<CudaSpace>::template multiply<Scalar>(stream, 1, dy, Transpose::no, weight, Transpose::no, 0, x);
    Elementwise<CudaSpace>::template backward<Gelu, Scalar>(stream, activated, before, before, Write::overwrite);
  }

 private:
  /// Returns the equal parts of a matrix's rows.
  template <std::size_t count, class Scalar>
  [[nodiscard]] static std::array<Matrix<Scalar>, count> parts(Matrix<Scalar> all) noexcept {
    std::array<Matrix<Scalar>, count> out;
    auto const rows = all.extent[0] / Index{count};
    for (std::size_t i = 0; i < count; ++i)
      out[i] = {all.data + static_cast<Index>(i) * rows * all.extent[1], {rows, all.extent[1]}};
    return out;
  }
  /// Returns the distance of views at equal distances, in elements; 0 if all are null; nothing for other views.
  template <class View, std::size_t count>
  [[nodiscard]] static std::optional<Index> stride_of(std::array<View, count> const& views) noexcept {
    using Element = std::remove_pointer_t<decltype(View::data)>;
    auto const address = [&](std::size_t i) { return reinterpret_cast<std::intptr_t>(views[i].data); };
    auto const distance = address(1) - address(0);
    for (std::size_t i = 1; i < count; ++i)
      if (views[i].extent != views[0].extent || address(i) - address(i - 1) != distance) return {};
    bool const none = !views[0].data;
    if (distance % static_cast<std::intptr_t>(sizeof(Element)) != 0 || distance < 0 || none != (distance == 0))
      return {};
    return distance / static_cast<std::intptr_t>(sizeof(Element));
  }
};

}}}  // namespace lockstep::kernel
