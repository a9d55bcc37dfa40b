// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/pooling/pooling.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

template <class Scalar>
LOCKSTEP_INLINE void Pooling<HostSpace>::reduce(Stream stream, SequenceLayout<HostSpace> layout,
                                                TokenReduction reduction, Matrix<Scalar const> x, Matrix<Scalar> y) {
  auto const width = y.extent[1];
  stream.pool().run(layout.rows, [=](Index row) {
    auto* const out = y.data + row * width;
    auto const tokens = layout.tokens(row);
    detail::sum_rows(x.data + layout.start(row) * width, width, width, tokens, out, Write::overwrite);
    if (reduction == TokenReduction::mean)
      for (Index c = 0; tokens > 0 && c < width; ++c) out[c] /= static_cast<Scalar>(tokens);
  });
}

template <class Scalar>
LOCKSTEP_INLINE void Pooling<HostSpace>::reduce_backward(Stream stream, SequenceLayout<HostSpace> layout,
                                                         TokenReduction reduction, Matrix<Scalar const> dy,
                                                         Matrix<Scalar> dx, Write write) {
  auto const width = dy.extent[1];
  stream.pool().run(layout.rows, [=](Index row) {
    with_best_instructions([=, first = layout.start(row), end = layout.end(row), tokens = layout.tokens(row)] {
      auto const* const in = dy.data + row * width;
      auto* out = dx.data + first * width;
      auto const divisor = static_cast<Scalar>(reduction == TokenReduction::mean ? tokens : 1);
      for (Index t = 0; t < tokens; ++t, out += width)
        detail::write_each(0, width, out, write, [=](Index c) { return in[c] / divisor; });
      if (write == Write::overwrite) std::fill_n(out, (end - first - tokens) * width, Scalar{0});
    });
  });
}

template <class Scalar>
LOCKSTEP_INLINE void Pooling<HostSpace>::token(Stream stream, SequenceLayout<HostSpace> layout, PooledToken which,
                                               Matrix<Scalar const> x, Matrix<Scalar> y) {
  auto const width = y.extent[1];
  stream.pool().run(layout.rows, [=](Index row) {
    auto* const out = y.data + row * width;
    if (layout.tokens(row) == 0) return static_cast<void>(std::fill_n(out, width, Scalar{0}));
    std::copy_n(x.data + detail::pooled_slot(layout, row, which) * width, width, out);
  });
}

template <class Scalar>
LOCKSTEP_INLINE void Pooling<HostSpace>::token_backward(Stream stream, SequenceLayout<HostSpace> layout,
                                                        PooledToken which, Matrix<Scalar const> dy, Matrix<Scalar> dx,
                                                        Write write) {
  auto const width = dy.extent[1];
  stream.pool().run(layout.rows, [=](Index row) {
    auto const* const in = dy.data + row * width;
    auto const start = layout.start(row), slots = layout.end(row) - start;
    if (write == Write::overwrite) std::fill_n(dx.data + start * width, slots * width, Scalar{0});
    if (layout.tokens(row) == 0) return;
    auto* const out = dx.data + detail::pooled_slot(layout, row, which) * width;
    for (Index c = 0; c < width; ++c) out[c] += in[c];
  });
}

template <class Scalar>
LOCKSTEP_INLINE void Pooling<HostSpace>::max(Stream stream, SequenceLayout<HostSpace> layout, Matrix<Scalar const> x,
                                             Matrix<Scalar> y, Matrix<std::int32_t> argmax) {
  auto const width = y.extent[1];
  stream.pool().run(layout.rows, [=](Index row) {
    with_best_instructions([=, first = layout.start(row), tokens = static_cast<std::int32_t>(layout.tokens(row))] {
      auto* const best = y.data + row * width;
      auto* const at = argmax.data ? argmax.data + row * width : nullptr;
      if (at) std::fill_n(at, width, tokens == 0 ? -1 : 0);
      if (tokens == 0) return static_cast<void>(std::fill_n(best, width, Scalar{0}));
      auto const* here = x.data + first * width;
      std::copy_n(here, width, best);
      for (std::int32_t token = 1; token < tokens; ++token) {
        here += width;
        if (at)
          for (Index c = 0; c < width; ++c) at[c] = detail::exceeds(here[c], best[c]) ? token : at[c];
        for (Index c = 0; c < width; ++c) best[c] = detail::exceeds(here[c], best[c]) ? here[c] : best[c];
      }
    });
  });
}

template <class Scalar>
LOCKSTEP_INLINE void Pooling<HostSpace>::max_backward(Stream stream, SequenceLayout<HostSpace> layout,
                                                      Matrix<Scalar const> dy, Matrix<std::int32_t const> argmax,
                                                      Matrix<Scalar> dx, Write write) {
  auto const width = dy.extent[1];
  stream.pool().run(layout.rows, [=](Index row) {
    auto* const out = dx.data + layout.start(row) * width;
    if (write == Write::overwrite) std::fill_n(out, (layout.end(row) - layout.start(row)) * width, Scalar{0});
    if (layout.tokens(row) == 0) return;
    for (Index c = 0; c < width; ++c) out[argmax.data[row * width + c] * width + c] += dy.data[row * width + c];
  });
}

// Instantiations in the library, for programs that link it.
#if defined(LOCKSTEP_COMPILED)
template void Pooling<HostSpace>::reduce<float>(Stream stream, SequenceLayout<HostSpace> layout,
                                                TokenReduction reduction, Matrix<float const> x, Matrix<float> y);
template void Pooling<HostSpace>::reduce<double>(Stream stream, SequenceLayout<HostSpace> layout,
                                                 TokenReduction reduction, Matrix<double const> x, Matrix<double> y);
template void Pooling<HostSpace>::reduce_backward<float>(Stream stream, SequenceLayout<HostSpace> layout,
                                                         TokenReduction reduction, Matrix<float const> dy,
                                                         Matrix<float> dx, Write write);
template void Pooling<HostSpace>::reduce_backward<double>(Stream stream, SequenceLayout<HostSpace> layout,
                                                          TokenReduction reduction, Matrix<double const> dy,
                                                          Matrix<double> dx, Write write);
template void Pooling<HostSpace>::token<float>(Stream stream, SequenceLayout<HostSpace> layout, PooledToken which,
                                               Matrix<float const> x, Matrix<float> y);
template void Pooling<HostSpace>::token<double>(Stream stream, SequenceLayout<HostSpace> layout, PooledToken which,
                                                Matrix<double const> x, Matrix<double> y);
template void Pooling<HostSpace>::token_backward<float>(Stream stream, SequenceLayout<HostSpace> layout,
                                                        PooledToken which, Matrix<float const> dy, Matrix<float> dx,
                                                        Write write);
template void Pooling<HostSpace>::token_backward<double>(Stream stream, SequenceLayout<HostSpace> layout,
                                                         PooledToken which, Matrix<double const> dy, Matrix<double> dx,
                                                         Write write);
template void Pooling<HostSpace>::max<float>(Stream stream, SequenceLayout<HostSpace> layout, Matrix<float const> x,
                                             Matrix<float> y, Matrix<std::int32_t> argmax);
template void Pooling<HostSpace>::max<double>(Stream stream, SequenceLayout<HostSpace> layout, Matrix<double const> x,
                                              Matrix<double> y, Matrix<std::int32_t> argmax);
template void Pooling<HostSpace>::max_backward<float>(Stream stream, SequenceLayout<HostSpace> layout,
                                                      Matrix<float const> dy, Matrix<std::int32_t const> argmax,
                                                      Matrix<float> dx, Write write);
template void Pooling<HostSpace>::max_backward<double>(Stream stream, SequenceLayout<HostSpace> layout,
                                                       Matrix<double const> dy, Matrix<std::int32_t const> argmax,
                                                       Matrix<double> dx, Write write);
#endif

}}}  // namespace lockstep::kernel
