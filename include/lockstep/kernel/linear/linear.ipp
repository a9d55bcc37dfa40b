// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/linear/linear.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

template <class Scalar>
LOCKSTEP_INLINE void Linear<HostSpace>::forward(Stream stream, Matrix<Scalar const> x, Matrix<Scalar const> weight,
                                                Vector<Scalar const> bias, Matrix<Scalar> y) {
  forward(stream, x, weight, bias, y, detail::GemmEpilogue{});
}

template <class Scalar>
LOCKSTEP_INLINE void Linear<HostSpace>::forward(Stream stream, Matrix<Scalar const> x, Matrix<Scalar const> weight,
                                                Vector<Scalar const> bias, Activation activation,
                                                RowDropout<HostSpace> dropout, Matrix<Scalar> y, Matrix<Scalar> slope) {
  auto const width = y.extent[1];
  bool const slopes = keeps_slope(activation) && slope.data;
  if (slopes) check_equal_shapes(y.extent, slope.extent);
  forward(stream, x, weight, bias, slopes ? slope : y, [&](Index first, Index rows, Index column, Index columns) {
    for (Index row = first; row < first + rows; ++row) {
      auto* const to = y.data + row * width + column;
      auto* const by = slopes ? slope.data + row * width + column : nullptr;
      if (activation == Activation::relu) Elementwise<HostSpace>::apply<Relu>(to, to, columns);
      if (activation == Activation::gelu) activate<Gelu>(to, by, columns);
      if (activation == Activation::gelu_tanh) activate<GeluTanh>(to, by, columns);
      if (activation == Activation::silu) activate<Silu>(to, by, columns);
      if (dropout.mask.active()) drop(dropout, row, width, column, columns, to, by);
    }
  });
}

template <class Scalar>
LOCKSTEP_INLINE void Linear<HostSpace>::forward_gelu(Stream stream, Matrix<Scalar const> x, Matrix<Scalar const> weight,
                                                     Vector<Scalar const> bias, Matrix<Scalar> h, Matrix<Scalar> y) {
  check_equal_shapes(y.extent, h.extent);
  auto const width = y.extent[1];
  forward(stream, x, weight, bias, h, [&](Index first, Index rows, Index column, Index columns) {
    for (Index row = first; row < first + rows; ++row)
      Elementwise<HostSpace>::apply<Gelu>(h.data + row * width + column, y.data + row * width + column, columns);
  });
}

LOCKSTEP_INLINE Index Linear<HostSpace>::rows_per_pass(Stream stream, Index rows) noexcept {
  return std::min(rows, 1024 * Index{stream.pool().threads()});
}

LOCKSTEP_INLINE Index Linear<HostSpace>::partial_elements(Stream stream, Index rows, Index inputs,
                                                          Index outputs) noexcept {
  auto const count = chunks(rows);
  return count > 1 ? (adds_in_place(stream) ? 1 : count) * (inputs + 1) * outputs : 0;
}

template <class Scalar>
LOCKSTEP_INLINE void Linear<HostSpace>::backward(Stream stream, Matrix<Scalar const> dy, Matrix<Scalar const> x,
                                                 Matrix<Scalar const> weight, ActivationSlope<Scalar, HostSpace> slope,
                                                 Matrix<Scalar> dx, Write dx_write, Matrix<Scalar> dweight,
                                                 Write dweight_write, Vector<Scalar> dbias, Write dbias_write,
                                                 Scalar* partial) {
  using Product = Gemm<HostSpace>;
  auto const beta = [](Write write) { return write == Write::add ? Scalar(1) : Scalar(0); };
  auto const rows = dy.extent[0], outputs = dy.extent[1], size = dweight.size();
  auto const to_dweight =
      Product::described<Scalar>(stream, 1, dy, Transpose::yes, x, Transpose::no, beta(dweight_write), dweight);
  detail::GemmBlock<Scalar> to_dx{};
  if (dx.data) {
    auto const keep = slope.given() ? Scalar(0) : beta(dx_write);
    to_dx = Product::described<Scalar>(stream, 1, dy, Transpose::no, weight, Transpose::no, keep, dx);
  }
  check_bias(weight.extent, dbias);
  if (slope.factors.data) check_equal_shapes(x.extent, slope.factors.extent);
  auto const dx_epilogue = [&](Index first, Index count, Index column, Index columns) {
    if (slope.given()) multiply_part(slope, x, dx, first, count, column, columns);
  };
  if (chunks(rows) <= 1 || !dweight.data) {
    if (dx.data) Product::multiply(stream, to_dx, dx_epilogue);
    if (dweight.data) Product::multiply(stream, to_dweight);
    if (dbias.data) detail::sum_rows(dy.data, outputs, outputs, rows, dbias.data, dbias_write);
    return;
  }
  bool const alone = adds_in_place(stream);
  bool const weight_in_place = alone && dweight_write == Write::overwrite;
  bool const bias_in_place = alone && dbias_write == Write::overwrite;
  auto const grain = chunk_rows, stride = size + outputs, sums = alone ? 1 : chunks(rows);
  auto const inputs = x.extent[1];
  stream.pool().for_ranges(rows, grain, [&](Index begin, Index end) {
    // Both products need dy, and the second needs x. Each prefetches the next operands: the second product's x, and
    // the next chunk's dy and x.
    Index const next = std::min(end - begin, rows - end);
    auto before = detail::Prefetch::of(x.data + begin * inputs, (end - begin) * inputs);
    auto after = detail::Prefetch::of(dy.data + end * outputs, next * outputs, x.data + end * inputs,
                                      dx.data ? Index{0} : next * inputs);
    if (dx.data) {
      auto block = to_dx;
      block.prefetch = &before;
      block.m = end - begin;
      block.a = to_dx.a.at(begin, 0);
      block.c += begin * to_dx.c_row;
      detail::multiply_on_this_thread(block, [&](Index row, Index count, Index column, Index columns) {
        dx_epilogue(begin + row, count, column, columns);
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
    block.prefetch = &after;
    detail::multiply_on_this_thread(block);
    if (dbias.data)
      detail::sum_rows(dy.data + begin * outputs, outputs, outputs, end - begin,
                       bias_in_place ? dbias.data : own + size, write);
  });
  if (!weight_in_place) sum_chunks(stream, partial, sums, stride, size, dweight.data, dweight_write);
  if (dbias.data && !bias_in_place) sum_chunks(stream, partial + size, sums, stride, outputs, dbias.data, dbias_write);
}

LOCKSTEP_INLINE Index Linear<HostSpace>::recomputed_elements(Stream stream, Index rows, Index inputs) noexcept {
  return std::min(rows, stream.pool().threads() * chunk_rows) * inputs;
}

template <class Scalar>
LOCKSTEP_INLINE void Linear<HostSpace>::backward_through_gelu(Stream stream, Matrix<Scalar const> dy, Matrix<Scalar> h,
                                                              Matrix<Scalar const> weight, Matrix<Scalar> dweight,
                                                              Write dweight_write, Vector<Scalar> dbias,
                                                              Write dbias_write, Scalar* partial, Scalar* recomputed) {
  using Product = Gemm<HostSpace>;
  auto const rows = dy.extent[0], outputs = dy.extent[1], inputs = h.extent[1], size = dweight.size();
  check_bias(weight.extent, dbias);
  auto const grain = chunk_rows, count = chunks(rows), stride = size + outputs;
  bool const alone = adds_in_place(stream), together = count <= 1;
  bool const weight_in_place = together || (alone && dweight_write == Write::overwrite);
  bool const bias_in_place = together || (alone && dbias_write == Write::overwrite);
  std::atomic<Index> next{0};
  auto const chunk = [&](Scalar* memory, Index at) {
    Index const begin = at * grain, end = std::min(rows, begin + grain);
    auto const first_write = [&](Write write) { return alone && begin > 0 ? Write::add : write; };
    Extents<2> const extent{end - begin, inputs};
    Matrix<Scalar const> const dy_here{dy.data + begin * outputs, {end - begin, outputs}};
    Matrix<Scalar> const x{memory, extent}, slope{h.data + begin * inputs, extent};
    auto const multiply = [&](detail::GemmBlock<Scalar> const& block, detail::GemmEpilogue epilogue) {
      if (together) return Product::multiply(stream, block, epilogue);
      detail::multiply_on_this_thread(block, epilogue);
    };
    Elementwise<HostSpace>::apply<Gelu>(slope.data, x.data, slope.data, slope.size());
    auto* const own = partial + (alone ? 0 : at * stride);
    auto const weight_write = first_write(together ? dweight_write : Write::overwrite);
    multiply(Product::described<Scalar>(stream, 1, dy_here, Transpose::yes, x, Transpose::no,
                                        weight_write == Write::add ? Scalar(1) : Scalar(0),
                                        {weight_in_place ? dweight.data : own, dweight.extent}),
             {});
    if (dbias.data)
      detail::sum_rows(dy_here.data, outputs, outputs, end - begin, bias_in_place ? dbias.data : own + size,
                       first_write(together ? dbias_write : Write::overwrite));
    // x is no longer needed: dy weight, which the slope multiplies, overwrites it.
    multiply(Product::described<Scalar>(stream, 1, dy_here, Transpose::no, weight, Transpose::no, 0, x),
             [&](Index first, Index part, Index column, Index columns) {
               multiply_part({.factors = x}, Matrix<Scalar const>(x), slope, first, part, column, columns);
             });
  };
  if (together) {
    chunk(recomputed, 0);
  } else {
    auto const members = std::min<Index>(stream.pool().threads(), count);
    stream.pool().run(members, [&](Index member) {
      for (Index at; (at = next.fetch_add(1, std::memory_order_relaxed)) < count;)
        chunk(recomputed + member * grain * inputs, at);
    });
  }
  auto const sums = alone ? 1 : count;
  if (!weight_in_place) sum_chunks(stream, partial, sums, stride, size, dweight.data, dweight_write);
  if (dbias.data && !bias_in_place) sum_chunks(stream, partial + size, sums, stride, outputs, dbias.data, dbias_write);
}

LOCKSTEP_INLINE bool Linear<HostSpace>::adds_in_place(Stream stream) noexcept {
  return stream.pool().threads() == 1 && !detail::products_by_blas();
}

template <class Scalar>
LOCKSTEP_INLINE void Linear<HostSpace>::forward(Stream stream, Matrix<Scalar const> x, Matrix<Scalar const> weight,
                                                Vector<Scalar const> bias, Matrix<Scalar> y,
                                                detail::GemmEpilogue epilogue) {
  check_bias(weight.extent, bias);
  auto block = Gemm<HostSpace>::described<Scalar>(stream, 1, x, Transpose::no, weight, Transpose::yes, 0, y);
  block.bias = bias.data;
  Gemm<HostSpace>::multiply(stream, block, epilogue);
}

template <class Scalar>
LOCKSTEP_INLINE void Linear<HostSpace>::check_bias(Extents<2> weight, Vector<Scalar> bias) {
  expect<ShapeError>(!bias.data || bias.extent[0] == weight[0], [&] {
    return "Linear: weight is " + to_string(weight) + " and bias is " + to_string(bias.extent) +
           "; bias needs one element per row of weight";
  });
}

LOCKSTEP_INLINE void Linear<HostSpace>::check_equal_shapes(Extents<2> layer, Extents<2> activation) {
  expect<ShapeError>(layer == activation, [&] {
    return "Linear: the layer has the shape " + to_string(layer) + " and its activation's slope or input has " +
           to_string(activation) + "; the two must be equal";
  });
}

template <class Rule, class Scalar>
LOCKSTEP_INLINE void Linear<HostSpace>::activate(Scalar* y, Scalar* slope, Index count) {
  if (slope)
    Elementwise<HostSpace>::apply<Rule>(slope, y, slope, count);
  else
    Elementwise<HostSpace>::apply<Rule>(y, y, count);
}

template <class Scalar>
LOCKSTEP_INLINE void Linear<HostSpace>::drop(RowDropout<HostSpace> dropout, Index row, Index width, Index column,
                                             Index count, Scalar* x, Scalar* y) {
  auto const scale = static_cast<Scalar>(dropout.mask.scale());
  auto const dropped = static_cast<std::uint16_t>(dropout.mask.dropped);
  auto const position = dropout.position(row), element = dropout.element(row, width, column);
  with_best_instructions([=, mask = dropout.mask] {
    detail::for_dropout_bits(mask, position, element, count, [=](Index done, Index here, std::uint16_t const* bits) {
      auto const multiply = [=](Scalar* elements) {
        for (Index i = 0; i < here; ++i) elements[done + i] *= bits[i] >= dropped ? scale : Scalar(0);
      };
      multiply(x);
      if (y) multiply(y);
    });
  });
}

template <class Scalar>
LOCKSTEP_INLINE void Linear<HostSpace>::multiply_part(ActivationSlope<Scalar, HostSpace> slope, Matrix<Scalar const> x,
                                                      Matrix<Scalar> dx, Index first, Index rows, Index column,
                                                      Index columns) {
  auto const width = dx.extent[1], at = first * width + column;
  auto const* const by = slope.factors.data ? slope.factors.data + at : nullptr;
  auto const* const from = x.data + at;
  auto* const to = dx.data + at;
  with_best_instructions([=, positive = slope.positive] {
    for (Index i = 0; i < rows * width; i += width) {
      if (by) {
        for (Index c = i; c < i + columns; ++c) to[c] *= by[c];
      } else {
        for (Index c = i; c < i + columns; ++c) to[c] = from[c] <= 0 ? Scalar(0) : to[c] * positive;
      }
    }
  });
}

template <class Scalar>
LOCKSTEP_INLINE void Linear<HostSpace>::sum_chunks(Stream stream, Scalar const* partial, Index count, Index stride,
                                                   Index size, Scalar* to, Write write) {
  stream.pool().for_ranges(size, 4096, [&](Index begin, Index end) {
    with_best_instructions([=](auto vectors) {
      // Not in blocks like sum_rows: a single thread adds chunk to chunk.
      detail::sum_rows_inline(vectors, partial + begin, stride, end - begin, detail::Consecutive{}, count, to + begin,
                              write);
    });
  });
}

// Instantiations in the library, for programs that link it.
#if defined(LOCKSTEP_COMPILED)
template void Linear<HostSpace>::forward<float>(Stream stream, Matrix<float const> x, Matrix<float const> weight,
                                                Vector<float const> bias, Matrix<float> y);
template void Linear<HostSpace>::forward<double>(Stream stream, Matrix<double const> x, Matrix<double const> weight,
                                                 Vector<double const> bias, Matrix<double> y);
template void Linear<HostSpace>::forward<float>(Stream stream, Matrix<float const> x, Matrix<float const> weight,
                                                Vector<float const> bias, Activation activation,
                                                RowDropout<HostSpace> dropout, Matrix<float> y, Matrix<float> slope);
template void Linear<HostSpace>::forward<double>(Stream stream, Matrix<double const> x, Matrix<double const> weight,
                                                 Vector<double const> bias, Activation activation,
                                                 RowDropout<HostSpace> dropout, Matrix<double> y, Matrix<double> slope);
template void Linear<HostSpace>::forward_gelu<float>(Stream stream, Matrix<float const> x, Matrix<float const> weight,
                                                     Vector<float const> bias, Matrix<float> h, Matrix<float> y);
template void Linear<HostSpace>::forward_gelu<double>(Stream stream, Matrix<double const> x,
                                                      Matrix<double const> weight, Vector<double const> bias,
                                                      Matrix<double> h, Matrix<double> y);
template void Linear<HostSpace>::backward<float>(Stream stream, Matrix<float const> dy, Matrix<float const> x,
                                                 Matrix<float const> weight, ActivationSlope<float, HostSpace> slope,
                                                 Matrix<float> dx, Write dx_write, Matrix<float> dweight,
                                                 Write dweight_write, Vector<float> dbias, Write dbias_write,
                                                 float* partial);
template void Linear<HostSpace>::backward<double>(Stream stream, Matrix<double const> dy, Matrix<double const> x,
                                                  Matrix<double const> weight, ActivationSlope<double, HostSpace> slope,
                                                  Matrix<double> dx, Write dx_write, Matrix<double> dweight,
                                                  Write dweight_write, Vector<double> dbias, Write dbias_write,
                                                  double* partial);
template void Linear<HostSpace>::backward_through_gelu<float>(Stream stream, Matrix<float const> dy, Matrix<float> h,
                                                              Matrix<float const> weight, Matrix<float> dweight,
                                                              Write dweight_write, Vector<float> dbias,
                                                              Write dbias_write, float* partial, float* recomputed);
template void Linear<HostSpace>::backward_through_gelu<double>(Stream stream, Matrix<double const> dy, Matrix<double> h,
                                                               Matrix<double const> weight, Matrix<double> dweight,
                                                               Write dweight_write, Vector<double> dbias,
                                                               Write dbias_write, double* partial, double* recomputed);
#endif

}}}  // namespace lockstep::kernel
