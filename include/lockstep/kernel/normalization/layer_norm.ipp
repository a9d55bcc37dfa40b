// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/normalization/layer_norm.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

template <class Scalar>
LOCKSTEP_INLINE void LayerNorm<HostSpace>::forward(Stream stream, Matrix<Scalar const> x,
                                                   Residual<Scalar, HostSpace> residual, Vector<Scalar const> weight,
                                                   Vector<Scalar const> bias, Scalar epsilon, Matrix<Scalar> sum,
                                                   Matrix<Accumulate<Scalar>> moments, Matrix<Scalar> y) {
  auto const width = x.extent[1];
  expect<ShapeError>(weight.extent[0] == width && bias.extent[0] == width, [&] {
    return "LayerNorm: rows have " + std::to_string(width) + " elements, weight has " + std::to_string(weight.size()) +
           " and bias " + std::to_string(bias.size());
  });
  expect<ShapeError>(!residual.value.data || residual.value.extent == x.extent, [&] {
    return "LayerNorm: x is " + to_string(x.extent) + " and the residual " + to_string(residual.value.extent);
  });
  stream.pool().for_ranges(x.extent[0], chunk_rows, [&](Index begin, Index end) {
    with_best_instructions([=](auto vectors) {
      auto const* const from = residual.value.data ? (sum.data ? sum.data : y.data) : x.data;
      auto const norm = [=](Index first, auto count) __attribute__((always_inline)) {
        auto const at = first * width;
        detail::RowMoments<Scalar> of_rows[count()];
        detail::moments_of_rows(vectors, from + at, width, epsilon, of_rows);
        if (moments.data) std::memcpy(moments.data + 2 * first, of_rows, sizeof of_rows);
        detail::normalize_and_scale_rows(vectors, from + at, of_rows, weight.data, bias.data, y.data + at, width);
      };
      for (Index row = begin, next; row < end; row = next) {
        next = residual.value.data ? std::min(end, row + rows_near) : end;
        for (Index r = row; residual.value.data && r < next; ++r)
          detail::add_residual(x.data + r * width, residual, r, width, (sum.data ? sum.data : y.data) + r * width);
        detail::for_rows_at_once(vectors, row, next, static_cast<std::size_t>(width) * sizeof(Scalar), norm);
      }
    });
  });
}

template <class Scalar>
LOCKSTEP_INLINE void LayerNorm<HostSpace>::backward(Stream stream, Matrix<Scalar const> dy, Matrix<Scalar const> sum,
                                                    Matrix<Accumulate<Scalar> const> moments,
                                                    Residual<Scalar, HostSpace> residual, Vector<Scalar const> weight,
                                                    Matrix<Scalar> dx, Write dx_write, Matrix<Scalar> dresidual,
                                                    Write dresidual_write, Vector<Scalar> dweight, Write dweight_write,
                                                    Vector<Scalar> dbias, Write dbias_write, Scalar* partial,
                                                    Vector<Scalar> dresidual_sums, Write dresidual_sums_write) {
  auto const rows = dy.extent[0], width = dy.extent[1];
  stream.pool().for_ranges(rows, chunk_rows, [&](Index begin, Index end) {
    auto* const sums = partial + begin / chunk_rows * 2 * width;
    std::fill_n(sums, 2 * width, Scalar(0));
    with_best_instructions([=](auto vectors) {
      for (Index row = begin; row < end; ++row) {
        auto const at = row * width;
        auto const* const d = dy.data + at;
        auto const* const s = sum.data + at;
        detail::RowMoments<Scalar> const of_row{moments.data[2 * row], moments.data[2 * row + 1]};
        auto const means = detail::add_row(vectors, d, s, of_row, weight.data, sums, sums + width, width);
        auto const differentiate = [=](Scalar* to, Write write) {
          detail::differentiate_row(d, s, of_row, weight.data, means, to, width, write);
        };
        if (dx.data && dx.data != dy.data) differentiate(dx.data + at, dx_write);
        if (dresidual.data && !residual.dropout.mask.active()) differentiate(dresidual.data + at, dresidual_write);
        Scalar undropped[block];
        for (Index c = 0; c < width && dresidual.data && residual.dropout.mask.active(); c += block) {
          auto const count = std::min(block, width - c);
          detail::differentiate_row(d + c, s + c, of_row, weight.data + c, means, undropped, count, Write::overwrite);
          detail::dropout_row(residual.dropout, row, width, c, count, undropped, dresidual.data + at + c,
                              dresidual_write);
        }
        if (dx.data == dy.data) detail::differentiate_row(dx.data + at, s, of_row, weight.data, means, width);
      }
    });
  });
  auto const chunks = (rows + chunk_rows - 1) / chunk_rows;
  detail::sum_rows(partial, 2 * width, width, chunks, dweight.data, dweight_write);
  detail::sum_rows(partial + width, 2 * width, width, chunks, dbias.data, dbias_write);
  if (dresidual_sums.data)  // needs no more chunks, of which the partial sums are read already
    ChannelBias<HostSpace>::backward<Scalar>(stream, dresidual, dresidual_sums, dresidual_sums_write, partial);
}

// Instantiations in the library, for programs that link it.
#if defined(LOCKSTEP_COMPILED)
template void LayerNorm<HostSpace>::forward<float>(Stream stream, Matrix<float const> x,
                                                   Residual<float, HostSpace> residual, Vector<float const> weight,
                                                   Vector<float const> bias, float epsilon, Matrix<float> sum,
                                                   Matrix<Accumulate<float>> moments, Matrix<float> y);
template void LayerNorm<HostSpace>::forward<double>(Stream stream, Matrix<double const> x,
                                                    Residual<double, HostSpace> residual, Vector<double const> weight,
                                                    Vector<double const> bias, double epsilon, Matrix<double> sum,
                                                    Matrix<Accumulate<double>> moments, Matrix<double> y);
template void LayerNorm<HostSpace>::backward<float>(Stream stream, Matrix<float const> dy, Matrix<float const> sum,
                                                    Matrix<Accumulate<float> const> moments,
                                                    Residual<float, HostSpace> residual, Vector<float const> weight,
                                                    Matrix<float> dx, Write dx_write, Matrix<float> dresidual,
                                                    Write dresidual_write, Vector<float> dweight, Write dweight_write,
                                                    Vector<float> dbias, Write dbias_write, float* partial,
                                                    Vector<float> dresidual_sums, Write dresidual_sums_write);
template void LayerNorm<HostSpace>::backward<double>(Stream stream, Matrix<double const> dy, Matrix<double const> sum,
                                                     Matrix<Accumulate<double> const> moments,
                                                     Residual<double, HostSpace> residual, Vector<double const> weight,
                                                     Matrix<double> dx, Write dx_write, Matrix<double> dresidual,
                                                     Write dresidual_write, Vector<double> dweight, Write dweight_write,
                                                     Vector<double> dbias, Write dbias_write, double* partial,
                                                     Vector<double> dresidual_sums, Write dresidual_sums_write);
#endif

}}}  // namespace lockstep::kernel
