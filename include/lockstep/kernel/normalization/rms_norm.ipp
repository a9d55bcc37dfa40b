// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/normalization/rms_norm.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

template <class Scalar>
LOCKSTEP_INLINE void RMSNorm<HostSpace>::forward(Stream stream, Matrix<Scalar const> x,
                                                 Residual<Scalar, HostSpace> residual, Vector<Scalar const> weight,
                                                 Scalar epsilon, Matrix<Scalar> sum, Vector<Scalar> reciprocals,
                                                 Matrix<Scalar> y) {
  auto const width = x.extent[1];
  expect<ShapeError>(weight.extent[0] == width, [&] {
    return "RMSNorm: rows have " + std::to_string(width) + " elements and weight has " + std::to_string(weight.size());
  });
  expect<ShapeError>(!residual.value.data || residual.value.extent == x.extent, [&] {
    return "RMSNorm: x is " + to_string(x.extent) + " and the residual " + to_string(residual.value.extent);
  });
  stream.pool().for_ranges(x.extent[0], chunk_rows, [&](Index begin, Index end) {
    with_best_instructions([=](auto vectors) {
      for (Index row = begin; row < end; ++row) {
        auto const* of = x.data + row * width;
        if (residual.value.data) {
          detail::add_residual(of, residual, row, width, sum.data + row * width);
          of = sum.data + row * width;
        }
        auto const reciprocal = detail::rms_row(vectors, of, weight.data, epsilon, y.data + row * width, width);
        if (reciprocals.data) reciprocals.data[row] = reciprocal;
      }
    });
  });
}

template <class Scalar>
LOCKSTEP_INLINE void RMSNorm<HostSpace>::backward(Stream stream, Matrix<Scalar const> dy, Matrix<Scalar const> sum,
                                                  Vector<Scalar const> reciprocals, Matrix<Scalar const> other_gradient,
                                                  RowDropout<HostSpace> dropout, Vector<Scalar const> weight,
                                                  Matrix<Scalar> dx, Write dx_write, Matrix<Scalar> dresidual,
                                                  Write dresidual_write, Vector<Scalar> dweight, Write dweight_write,
                                                  Scalar* partial) {
  auto const rows = dy.extent[0], width = dy.extent[1];
  stream.pool().for_ranges(rows, chunk_rows, [&](Index begin, Index end) {
    auto* const sums = partial + begin / chunk_rows * width;
    std::fill_n(sums, width, Scalar(0));
    with_best_instructions([=](auto vectors) {
      for (Index row = begin; row < end; ++row) {
        auto const at = row * width;
        auto const reciprocal = reciprocals.data[row];
        auto const projection =
            detail::add_rms_row(vectors, dy.data + at, sum.data + at, weight.data, reciprocal, sums, width);
        Scalar gradient[block];
        for (Index c = 0; c < width; c += block) {
          auto const count = std::min(block, width - c);
          detail::differentiate_rms_row(dy.data + at + c, sum.data + at + c, weight.data + c, reciprocal, projection,
                                        other_gradient.data ? other_gradient.data + at + c : nullptr, gradient, count);
          if (dx.data) detail::write_row(gradient, dx.data + at + c, count, dx_write);
          if (!dresidual.data) continue;
          if (dropout.mask.active())
            detail::dropout_row(dropout, row, width, c, count, gradient, dresidual.data + at + c, dresidual_write);
          else
            detail::write_row(gradient, dresidual.data + at + c, count, dresidual_write);
        }
      }
    });
  });
  detail::sum_rows(partial, width, width, chunks(rows), dweight.data, dweight_write);
}

// Instantiations in the library, for programs that link it.
#if defined(LOCKSTEP_COMPILED)
template void RMSNorm<HostSpace>::forward<float>(Stream stream, Matrix<float const> x,
                                                 Residual<float, HostSpace> residual, Vector<float const> weight,
                                                 float epsilon, Matrix<float> sum, Vector<float> reciprocals,
                                                 Matrix<float> y);
template void RMSNorm<HostSpace>::forward<double>(Stream stream, Matrix<double const> x,
                                                  Residual<double, HostSpace> residual, Vector<double const> weight,
                                                  double epsilon, Matrix<double> sum, Vector<double> reciprocals,
                                                  Matrix<double> y);
template void RMSNorm<HostSpace>::backward<float>(Stream stream, Matrix<float const> dy, Matrix<float const> sum,
                                                  Vector<float const> reciprocals, Matrix<float const> other_gradient,
                                                  RowDropout<HostSpace> dropout, Vector<float const> weight,
                                                  Matrix<float> dx, Write dx_write, Matrix<float> dresidual,
                                                  Write dresidual_write, Vector<float> dweight, Write dweight_write,
                                                  float* partial);
template void RMSNorm<HostSpace>::backward<double>(Stream stream, Matrix<double const> dy, Matrix<double const> sum,
                                                   Vector<double const> reciprocals,
                                                   Matrix<double const> other_gradient, RowDropout<HostSpace> dropout,
                                                   Vector<double const> weight, Matrix<double> dx, Write dx_write,
                                                   Matrix<double> dresidual, Write dresidual_write,
                                                   Vector<double> dweight, Write dweight_write, double* partial);
#endif

}}}  // namespace lockstep::kernel
