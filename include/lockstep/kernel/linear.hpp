// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/activation.hpp>
#include <lockstep/kernel/detail/drop.hpp>
#include <lockstep/kernel/detail/sum_rows.hpp>
#include <lockstep/kernel/gelu.hpp>
#include <lockstep/kernel/gemm.hpp>
#include <lockstep/kernel/relu.hpp>
#include <lockstep/kernel/row_dropout.hpp>
#include <lockstep/kernel/slope.hpp>
#include <lockstep/kernel/write.hpp>
#include <lockstep/memory/stream.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel {

/// An affine map of every row.
template <class Space>
struct Linear {
  static_assert(sizeof(Space) == 0, "Lockstep: include lockstep/cuda.cuh and compile with nvcc");
};

template <>
struct Linear<HostSpace> {
  using Stream = memory::Stream<HostSpace>;
  template <class T>
  using Matrix = TensorView<T, 2, HostSpace>;
  template <class T>
  using Vector = TensorView<T, 1, HostSpace>;

  /// Rows that share one partial sum of the parameters' gradients: what one pass of the product takes.
  [[nodiscard]] static constexpr Index chunk_rows(Index outputs) noexcept { return detail::pass_depth(outputs); }

  /// y = x weight^T + bias.
  /// @shape x [rows, inputs]   @shape weight [outputs, inputs]   @shape bias [outputs], or a null one: none
  /// @shape y [rows, outputs], overwritten
  /// @determinism bitwise, for any number of threads
  /// @throws ShapeError when the shapes disagree; says both numbers
  template <class T>
  static void forward(Stream stream, Matrix<T const> x, Matrix<T const> weight, Vector<T const> bias, Matrix<T> y) {
    forward(stream, x, weight, bias, y, detail::Nothing{});
  }

  /// y = dropout(f(h)) for h = x weight^T + bias and the activation f, while h is still in cache, and slope =
  /// dropout(f'(h)) for gelu. A null slope is left out; other activations leave it alone, since y tells theirs: see
  /// Slope.
  /// @shape y, slope [rows, outputs], overwritten
  template <class T>
  static void forward(Stream stream, Matrix<T const> x, Matrix<T const> weight, Vector<T const> bias,
                      Activation activation, RowDropout<HostSpace> dropout, Matrix<T> y, Matrix<T> slope) {
    auto const width = y.extent[1];
    bool const slopes = activation == Activation::gelu && slope.data;
    forward(stream, x, weight, bias, slopes ? slope : y, [&](Index first, Index rows, Index column, Index columns) {
      for (Index row = first; row < first + rows; ++row) {
        auto* const to = y.data + row * width + column;
        auto* const by = slopes ? slope.data + row * width + column : nullptr;
        if (activation == Activation::relu) {
          Relu<HostSpace>::apply(to, to, columns);
        } else if (by) {
          Gelu<HostSpace>::apply(by, to, by, columns);
        } else if (activation == Activation::gelu) {
          Gelu<HostSpace>::apply(to, to, columns);
        }
        if (dropout.mask.active()) drop(dropout, row, width, column, columns, to, by);
      }
    });
  }

  /// How many elements `backward` needs for its partial sums.
  [[nodiscard]] static constexpr Index partial_elements(Index rows, Index inputs, Index outputs) noexcept {
    auto const count = chunks(rows, outputs);
    return count > 1 ? count * (inputs + 1) * outputs : 0;
  }

  /// dx = dy weight, dweight = dy^T x, dbias = sum over the rows of dy; each overwritten or added to. A null dx or
  /// dbias is left out. All three are made from a chunk of dy while it is in cache; what the chunks give for the
  /// parameters is summed in order. With a `slope`, that of what made x, dx is overwritten by (dy weight) * slope.
  /// @shape dy [rows, outputs]   @shape x, dx, slope [rows, inputs]   @shape weight, dweight [outputs, inputs]
  /// @shape dbias [outputs]   @shape partial [partial_elements(rows, inputs, outputs)], overwritten
  /// @determinism bitwise, for any number of threads
  /// @throws ShapeError when the shapes disagree; says both numbers
  template <class T>
  static void backward(Stream stream, Matrix<T const> dy, Matrix<T const> x, Matrix<T const> weight,
                       Slope<T, HostSpace> slope, Matrix<T> dx, Write dx_write, Matrix<T> dweight, Write dweight_write,
                       Vector<T> dbias, Write dbias_write, T* partial) {
    using Product = Gemm<HostSpace>;
    auto const beta = [](Write write) { return write == Write::add ? T(1) : T(0); };
    auto const rows = dy.extent[0], outputs = dy.extent[1], size = dweight.size();
    auto const to_dweight =
        Product::described<T>(1, dy, Transpose::yes, x, Transpose::no, beta(dweight_write), dweight);
    detail::GemmBlock<T> to_dx{};
    if (dx.data) {
      auto const keep = slope.given() ? T(0) : beta(dx_write);
      to_dx = Product::described<T>(1, dy, Transpose::no, weight, Transpose::no, keep, dx);
    }
    auto const dx_done = [&](Index first, Index count, Index column, Index columns) {
      if (slope.given()) multiply_part(slope, x, dx, first, count, column, columns);
    };
    if (chunks(rows, outputs) <= 1) {
      if (dx.data) Product::multiply(stream, to_dx, dx_done);
      Product::multiply(stream, to_dweight, detail::Nothing{});
      if (dbias.data) detail::sum_rows(dy.data, outputs, outputs, detail::Consecutive{}, rows, dbias.data, dbias_write);
      return;
    }
    // One thread adds chunk to chunk, in place where nothing stands there yet; several keep the chunks' sums apart and
    // add them up in that order. (A library may add to what stands there in an order of its own.)
    bool const alone = stream.pool().threads() == 1 && !detail::products_by_blas();
    bool const weight_in_place = alone && dweight_write == Write::overwrite;
    bool const bias_in_place = alone && dbias_write == Write::overwrite;
    auto const grain = chunk_rows(outputs), stride = size + outputs, sums = alone ? 1 : chunks(rows, outputs);
    auto const inputs = x.extent[1];
    stream.pool().for_ranges(rows, grain, [&](Index begin, Index end) {
      // Both products need dy, and the second x: the one asks for what the other reads, and for the next chunk's.
      Index const next = std::min(end - begin, rows - end);
      auto before = detail::Ahead::of(x.data + begin * inputs, (end - begin) * inputs);
      auto after = detail::Ahead::of(dy.data + end * outputs, next * outputs, x.data + end * inputs,
                                     dx.data ? Index{0} : next * inputs);
      if (dx.data) {
        auto block = to_dx;
        block.ahead = &before;
        block.m = end - begin;
        block.a = to_dx.a.at(begin, 0);
        block.c += begin * to_dx.c_row;
        detail::multiply_on_this_thread(block, [&](Index row, Index count, Index column, Index columns) {
          dx_done(begin + row, count, column, columns);
        });
      }
      auto* const own = partial + (alone ? 0 : begin / grain * stride);
      auto const write = alone && begin > 0 ? Write::add : Write::overwrite;
      auto block = to_dweight;
      block.k = end - begin;
      block.a = to_dweight.a.at(0, begin);
      block.b = to_dweight.b.at(begin, 0);
      block.beta = beta(write);
      block.c = weight_in_place ? dweight.data : own;
      block.ahead = &after;
      detail::multiply_on_this_thread(block);
      if (dbias.data)
        detail::sum_rows(dy.data + begin * outputs, outputs, outputs, detail::Consecutive{}, end - begin,
                         bias_in_place ? dbias.data : own + size, write);
    });
    if (!weight_in_place) add_up(stream, partial, sums, stride, size, dweight.data, dweight_write);
    if (dbias.data && !bias_in_place) add_up(stream, partial + size, sums, stride, outputs, dbias.data, dbias_write);
  }

 private:
  [[nodiscard]] static constexpr Index chunks(Index rows, Index outputs) noexcept {
    return (rows + chunk_rows(outputs) - 1) / chunk_rows(outputs);
  }

  /// `done(row, rows, column, columns)` follows each part of y while it is still in cache.
  template <class T, class Done>
  static void forward(Stream stream, Matrix<T const> x, Matrix<T const> weight, Vector<T const> bias, Matrix<T> y,
                      Done&& done) {
    expect<ShapeError>(!bias.data || bias.extent[0] == weight.extent[0], [&] {
      return "Linear: weight is " + to_string(weight.extent) + " and bias is " + to_string(bias.extent) +
             "; bias needs one element per row of weight";
    });
    auto block = Gemm<HostSpace>::described<T>(1, x, Transpose::no, weight, Transpose::yes, 0, y);
    block.bias = bias.data;
    Gemm<HostSpace>::multiply(stream, block, done);
  }

  /// Drops the same elements of both, or of x where y is null: one evaluation of the mask serves forward and backward.
  template <class T>
  static void drop(RowDropout<HostSpace> dropout, Index row, Index width, Index column, Index count, T* x, T* y) {
    auto const scale = static_cast<T>(dropout.mask.scale());
    auto const dropped = static_cast<std::uint16_t>(dropout.mask.dropped);
    auto const position = dropout.position(row), element = dropout.element(row, width, column);
    with_best_instructions([=, mask = dropout.mask] {
      detail::for_dropout_bits(mask, position, element, count, [=](Index done, Index here, std::uint16_t const* bits) {
        auto const multiply = [=](T* elements) {
          for (Index i = 0; i < here; ++i) elements[done + i] *= bits[i] >= dropped ? scale : T(0);
        };
        multiply(x);
        if (y) multiply(y);
      });
    });
  }

  /// dx *= slope over a part of both.
  template <class T>
  static void multiply_part(Slope<T, HostSpace> slope, Matrix<T const> x, Matrix<T> dx, Index first, Index rows,
                            Index column, Index columns) {
    auto const width = dx.extent[1], at = first * width + column;
    auto const* const by = slope.factors.data ? slope.factors.data + at : nullptr;
    auto const* const from = x.data + at;
    auto* const to = dx.data + at;
    with_best_instructions([=, positive = slope.positive] {
      for (Index i = 0; i < rows * width; i += width) {
        if (by) {
          for (Index c = i; c < i + columns; ++c) to[c] *= by[c];
        } else {
          for (Index c = i; c < i + columns; ++c) to[c] = from[c] <= 0 ? T(0) : to[c] * positive;
        }
      }
    });
  }

  /// to = the sum over the chunks, in order, or to += that.
  template <class T>
  static void add_up(Stream stream, T const* partial, Index count, Index stride, Index size, T* to, Write write) {
    stream.pool().for_ranges(size, 4096, [&](Index begin, Index end) {
      detail::sum_rows(partial + begin, stride, end - begin, detail::Consecutive{}, count, to + begin, write);
    });
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
