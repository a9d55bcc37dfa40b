// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/pooling/detail/window_divisor.hpp>
#include <lockstep/kernel/pooling/spatial_pooling.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

template <class Scalar>
LOCKSTEP_INLINE void SpatialPooling<HostSpace>::max(Stream stream, PoolingShape const& s, Vector<Scalar const> x,
                                                    Vector<Scalar> y, Vector<std::int32_t> argmax) {
  detail::check_pooling(s, x.size(), y.size());
  for_windows(stream, s, [=, channels = s.inputs](Index row, Index position, Window const& window) {
    auto* const best = y.data + (row * s.output_positions() + position) * channels;
    auto* const at = argmax.data ? argmax.data + (row * s.output_positions() + position) * channels : nullptr;
    auto const* const sample = x.data + row * s.input_size();
    std::fill_n(best, channels, -std::numeric_limits<Scalar>::infinity());
    if (at) std::fill_n(at, channels, static_cast<std::int32_t>(window.first_position(s)));
    window.for_positions(s, [=](Index from) {
      auto const* const here = sample + from * channels;
      if (at) {
        for (Index c = 0; c < channels; ++c) at[c] = wins(here[c], best[c]) ? static_cast<std::int32_t>(from) : at[c];
      }
      for (Index c = 0; c < channels; ++c) best[c] = wins(here[c], best[c]) ? here[c] : best[c];
    });
  });
}

template <class Scalar>
LOCKSTEP_INLINE void SpatialPooling<HostSpace>::max_backward(Stream stream, PoolingShape const& s,
                                                             Vector<Scalar const> dy, Vector<std::int32_t const> argmax,
                                                             Vector<Scalar> dx, Write write) {
  detail::check_pooling(s, dx.size(), dy.size());
  stream.pool().run(s.rows,
                    [=, channels = s.inputs, positions = s.output_positions(), size = s.input_size()](Index row) {
                      auto* const to = dx.data + row * size;
                      if (write == Write::overwrite) std::fill_n(to, size, Scalar{0});
                      for (Index position = row * positions; position < (row + 1) * positions; ++position)
                        for (Index c = 0; c < channels; ++c)
                          to[argmax.data[position * channels + c] * channels + c] += dy.data[position * channels + c];
                    });
}

template <class Scalar>
LOCKSTEP_INLINE void SpatialPooling<HostSpace>::average(Stream stream, PoolingShape const& s, Vector<Scalar const> x,
                                                        Vector<Scalar> y, PoolingDivisor divisor) {
  detail::check_pooling(s, x.size(), y.size());
  if (s.kernel == s.extent && s.output_positions() == 1 && s.padding == Extents<3>{} && s.padding_after == s.padding)
    return average_of_all(stream, s, x, y);
  detail::WindowDivisor const taps(s, divisor == PoolingDivisor::padded ? s.padding : Extents<3>{});
  for_windows(stream, s, [=, channels = s.inputs](Index row, Index position, Window const& window) {
    auto* const sum = y.data + (row * s.output_positions() + position) * channels;
    std::fill_n(sum, channels, Scalar{0});
    window.for_positions(s, [=](Index from) {
      auto const* const here = x.data + row * s.input_size() + from * channels;
      for (Index c = 0; c < channels; ++c) sum[c] += here[c];
    });
    auto const count = static_cast<Scalar>(taps(position));
    for (Index c = 0; c < channels; ++c) sum[c] /= count;
  });
}

template <class Scalar>
LOCKSTEP_INLINE void SpatialPooling<HostSpace>::average_backward(Stream stream, PoolingShape const& s,
                                                                 Vector<Scalar const> dy, Vector<Scalar> dx,
                                                                 Write write, PoolingDivisor divisor) {
  detail::check_pooling(s, dx.size(), dy.size());
  detail::WindowDivisor const taps(s, divisor == PoolingDivisor::padded ? s.padding : Extents<3>{});
  stream.pool().run(s.rows, [=](Index row) {
    with_best_instructions([=] {
      Index const channels = s.inputs;
      auto* const to = dx.data + row * s.input_size();
      if (write == Write::overwrite) std::fill_n(to, s.input_size(), Scalar{0});
      for (Index position = 0; position < s.output_positions(); ++position) {
        auto const* const from = dy.data + (row * s.output_positions() + position) * channels;
        auto const count = static_cast<Scalar>(taps(position));
        Window(s, position).for_positions(s, [=](Index at) {
          for (Index c = 0; c < channels; ++c) to[at * channels + c] += from[c] / count;
        });
      }
    });
  });
}

template <class Scalar>
LOCKSTEP_INLINE void SpatialPooling<HostSpace>::average_of_all(Stream stream, PoolingShape const& s,
                                                               Vector<Scalar const> x, Vector<Scalar> y) {
  stream.pool().for_ranges(s.rows, std::max<Index>(1, 8192 / std::max<Index>(1, s.input_size())),
                           [=, channels = s.inputs](Index row, Index end) {
                             for (; row < end; ++row) {
                               auto* const mean = y.data + row * channels;
                               detail::sum_rows(x.data + row * s.input_size(), channels, channels, s.taps(), mean,
                                                Write::overwrite);
                               for (Index c = 0; c < channels; ++c) mean[c] /= static_cast<Scalar>(s.taps());
                             }
                           });
}

LOCKSTEP_INLINE SpatialPooling<HostSpace>::Window::Window(PoolingShape const& s, Index position) noexcept {
  auto const height = s.result(1), width = s.result(2);
  Extents<3> const at{position / (height * width), position / width % height, position % width};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    begin[axis] = std::max<Index>(0, s.begin(axis, at[axis]));
    end[axis] = std::min(s.extent[axis], s.end(axis, at[axis]));
  }
}

LOCKSTEP_INLINE Index SpatialPooling<HostSpace>::Window::first_position(PoolingShape const& s) const noexcept {
  return (begin[0] * s.extent[1] + begin[1]) * s.extent[2] + begin[2];
}

template <class Function>
LOCKSTEP_INLINE void SpatialPooling<HostSpace>::for_windows(Stream stream, PoolingShape const& s, Function const& f) {
  auto const positions = s.output_positions();
  Index const each = std::max<Index>(1, 8192 / std::max<Index>(1, s.inputs * s.taps()));
  stream.pool().for_ranges(s.rows * positions, each, [&f, s, positions](Index begin, Index end) {
    with_best_instructions([f, s, positions, begin, end] {
      for (Index i = begin; i < end; ++i) f(i / positions, i % positions, Window(s, i % positions));
    });
  });
}

// Instantiations in the library, for programs that link it.
#if defined(LOCKSTEP_COMPILED)
template void SpatialPooling<HostSpace>::max<float>(Stream stream, PoolingShape const& s, Vector<float const> x,
                                                    Vector<float> y, Vector<std::int32_t> argmax);
template void SpatialPooling<HostSpace>::max<double>(Stream stream, PoolingShape const& s, Vector<double const> x,
                                                     Vector<double> y, Vector<std::int32_t> argmax);
template void SpatialPooling<HostSpace>::max_backward<float>(Stream stream, PoolingShape const& s,
                                                             Vector<float const> dy, Vector<std::int32_t const> argmax,
                                                             Vector<float> dx, Write write);
template void SpatialPooling<HostSpace>::max_backward<double>(Stream stream, PoolingShape const& s,
                                                              Vector<double const> dy,
                                                              Vector<std::int32_t const> argmax, Vector<double> dx,
                                                              Write write);
template void SpatialPooling<HostSpace>::average<float>(Stream stream, PoolingShape const& s, Vector<float const> x,
                                                        Vector<float> y, PoolingDivisor divisor);
template void SpatialPooling<HostSpace>::average<double>(Stream stream, PoolingShape const& s, Vector<double const> x,
                                                         Vector<double> y, PoolingDivisor divisor);
template void SpatialPooling<HostSpace>::average_backward<float>(Stream stream, PoolingShape const& s,
                                                                 Vector<float const> dy, Vector<float> dx, Write write,
                                                                 PoolingDivisor divisor);
template void SpatialPooling<HostSpace>::average_backward<double>(Stream stream, PoolingShape const& s,
                                                                  Vector<double const> dy, Vector<double> dx,
                                                                  Write write, PoolingDivisor divisor);
#endif

}}}  // namespace lockstep::kernel
