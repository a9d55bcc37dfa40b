// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/normalization/group_norm.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

template <class Scalar>
LOCKSTEP_INLINE void GroupNorm<HostSpace>::measure(Stream stream, Shape const& s, Scalar const* x, double epsilon,
                                                   Statistics<Scalar> statistics, Scalar* partial) {
  for_chunks(stream, s, [=](Index row, Index chunk, Index begin, Index end) {
    with_best_instructions([=](auto vectors) {
      auto const* const here = x + row * s.positions * s.channels;
      auto* const sums = partial + 2 * (row * chunks(s) + chunk) * s.channels;
      detail::for_column_lanes<Scalar>(vectors, s.channels, [=]<class Lane>(Index c) {
        Lane sum, rest, squares, next;
        detail::clear(sum);
        detail::clear(rest);
        detail::clear(squares);
        for (Index p = begin; p < end; ++p) {
          detail::load(next, here + p * s.channels + c);
          sum += next;
        }
        auto const count = static_cast<Scalar>(end - begin);
        Lane center = sum / count;
        for (Index p = begin; p < end; ++p) {
          detail::load(next, here + p * s.channels + c);
          next -= center;
          rest += next;  // the rounding error of the first sum
          squares += next * next;
        }
        squares -= rest * rest / count;
        center += rest / count;
        detail::store(sums + c, center);
        detail::store(sums + s.channels + c, squares);
      });
    });
  });
  stream.pool().for_ranges(s.rows, rows_per_task, [=](Index row, Index end) {
    for (; row < end; ++row)
      for (Index first = 0; first < s.channels; first += s.group_channels()) {
        double count = 0, center = 0, squares = 0;
        for (Index chunk = 0; chunk < chunks(s); ++chunk) {
          auto const here = static_cast<double>(std::min(chunk_positions(s), s.positions - chunk * chunk_positions(s)));
          auto const* const sums = partial + 2 * (row * chunks(s) + chunk) * s.channels;
          for (Index c = first; c < first + s.group_channels(); ++c) {
            double const off = static_cast<double>(sums[c]) - center, all = count + here;
            center += off * here / all;
            squares += static_cast<double>(sums[s.channels + c]) + off * off * count * here / all;
            count = all;
          }
        }
        double const variance = count > 0 ? squares / count : 0;
        auto const at = row * s.channels + first;
        std::fill_n(statistics.mean + at, s.group_channels(), static_cast<Scalar>(center));
        std::fill_n(statistics.reciprocal + at, s.group_channels(),
                    static_cast<Scalar>(1 / std::sqrt(variance + epsilon)));
      }
  });
}

template <class Scalar>
LOCKSTEP_INLINE void GroupNorm<HostSpace>::forward(Stream stream, Shape const& s, Scalar const* x,
                                                   Statistics<Scalar> statistics, Scalar const* weight,
                                                   Scalar const* bias, Activation activation, Scalar* y) {
  for_chunks(stream, s, [=](Index row, Index, Index begin, Index end) {
    with_best_instructions([=](auto vectors) {
      auto const first = row * s.positions * s.channels;
      detail::for_column_lanes<Scalar>(vectors, s.channels, [=]<class Lane>(Index c) {
        Lane center, factor, of_weight, shift, out, zero;
        detail::clear(zero);
        detail::load(center, statistics.mean + row * s.channels + c);
        detail::load(factor, statistics.reciprocal + row * s.channels + c);
        detail::load(of_weight, weight + c);
        detail::load(shift, bias + c);
        factor *= of_weight;
        for (Index at = first + begin * s.channels + c; at < first + end * s.channels; at += s.channels) {
          detail::load(out, x + at);
          out = (out - center) * factor + shift;
          if (activation == Activation::relu) out = out < zero ? zero : out;  // NaN stays NaN
          detail::store(y + at, out);
        }
      });
    });
  });
}

template <class Scalar>
LOCKSTEP_INLINE void GroupNorm<HostSpace>::backward(Stream stream, Shape const& s, Scalar const* dy, Scalar const* x,
                                                    Statistics<Scalar> statistics, Scalar const* weight,
                                                    Scalar const* bias, Activation activation, Scalar* dx,
                                                    Write dx_write, Scalar* dweight, Write dweight_write, Scalar* dbias,
                                                    Write dbias_write, Scalar* partial) {
  for_chunks(stream, s, [=](Index row, Index chunk, Index begin, Index end) {
    with_best_instructions([=](auto vectors) {
      auto const first = row * s.positions * s.channels;
      auto* const sums = partial + 2 * (row * chunks(s) + chunk) * s.channels;
      detail::for_column_lanes<Scalar>(vectors, s.channels, [=]<class Lane>(Index c) {
        Lane center, reciprocal, of_weight, shift, z, g, sum, products, zero;
        detail::clear(sum);
        detail::clear(products);
        detail::clear(zero);
        detail::load(center, statistics.mean + row * s.channels + c);
        detail::load(reciprocal, statistics.reciprocal + row * s.channels + c);
        detail::load(of_weight, weight + c);
        detail::load(shift, bias + c);
        Lane const factor = reciprocal * of_weight;
        for (Index at = first + begin * s.channels + c; at < first + end * s.channels; at += s.channels) {
          detail::load(z, x + at);
          detail::load(g, dy + at);
          z -= center;
          if (activation == Activation::relu) g = z * factor + shift > zero ? g : zero;
          sum += g;
          products += g * z;
        }
        products *= reciprocal;
        detail::store(sums + c, sum);
        detail::store(sums + s.channels + c, products);
      });
    });
  });
  // First each sample's sums of g and g z, then their means over the sample's groups.
  auto* const of_rows = partial + 2 * s.rows * chunks(s) * s.channels;
  stream.pool().for_ranges(2 * s.rows, rows_per_task, [=](Index i, Index end) {
    for (; i < end; ++i)
      for (Index c = 0; c < s.channels; ++c) {
        double sum = 0;
        for (Index chunk = 0; chunk < chunks(s); ++chunk)
          sum += static_cast<double>(partial[(2 * (i / 2 * chunks(s) + chunk) + i % 2) * s.channels + c]);
        of_rows[i * s.channels + c] = static_cast<Scalar>(sum);
      }
  });
  for (Index c = 0; c < s.channels; ++c) {
    double g = 0, gz = 0;
    for (Index row = 0; row < s.rows; ++row) {
      g += static_cast<double>(of_rows[2 * row * s.channels + c]);
      gz += static_cast<double>(of_rows[(2 * row + 1) * s.channels + c]);
    }
    put(dbias[c], static_cast<Scalar>(g), dbias_write);
    put(dweight[c], static_cast<Scalar>(gz), dweight_write);
  }
  if (!dx || s.positions == 0) return;
  for (Index i = 0; i < 2 * s.rows; ++i)
    for (Index first = 0; first < s.channels; first += s.group_channels()) {
      auto* const here = of_rows + i * s.channels + first;
      double sum = 0;
      for (Index c = 0; c < s.group_channels(); ++c)
        sum += static_cast<double>(here[c]) * static_cast<double>(weight[first + c]);
      std::fill_n(here, s.group_channels(), static_cast<Scalar>(sum / static_cast<double>(s.group_size())));
    }
  for_chunks(stream, s, [=](Index row, Index, Index begin, Index end) {
    with_best_instructions([=](auto vectors) {
      auto const first = row * s.positions * s.channels;
      detail::for_column_lanes<Scalar>(vectors, s.channels, [=]<class Lane>(Index c) {
        Lane center, reciprocal, of_weight, shift, mean_g, mean_gz, z, g, zero;
        detail::clear(zero);
        detail::load(center, statistics.mean + row * s.channels + c);
        detail::load(reciprocal, statistics.reciprocal + row * s.channels + c);
        detail::load(of_weight, weight + c);
        detail::load(shift, bias + c);
        detail::load(mean_g, of_rows + 2 * row * s.channels + c);
        detail::load(mean_gz, of_rows + (2 * row + 1) * s.channels + c);
        mean_gz *= reciprocal;
        Lane const factor = reciprocal * of_weight;
        for (Index at = first + begin * s.channels + c; at < first + end * s.channels; at += s.channels) {
          detail::load(z, x + at);
          detail::load(g, dy + at);
          z -= center;
          if (activation == Activation::relu) g = z * factor + shift > zero ? g : zero;
          g = reciprocal * (of_weight * g - mean_g - z * mean_gz);
          if (dx_write == Write::add) {
            detail::load(z, dx + at);
            g += z;
          }
          detail::store(dx + at, g);
        }
      });
    });
  });
}

template <class Function>
LOCKSTEP_INLINE void GroupNorm<HostSpace>::for_chunks(Stream stream, Shape const& s, Function const& f) {
  auto const of_row = chunks(s), each = chunk_positions(s);
  auto const together = std::max<Index>(1, each / std::max<Index>(1, s.positions));  // number of small samples per task
  stream.pool().for_ranges(s.rows * of_row, together, [&](Index i, Index end) {
    for (; i < end; ++i) {
      auto const begin = i % of_row * each;
      f(i / of_row, i % of_row, begin, std::min(begin + each, s.positions));
    }
  });
}

template <class Scalar>
LOCKSTEP_INLINE void GroupNorm<HostSpace>::put(Scalar& to, Scalar value, Write how) noexcept {
  to = how == Write::add ? to + value : value;
}

// Instantiations in the library, for programs that link it.
#if defined(LOCKSTEP_COMPILED)
template void GroupNorm<HostSpace>::measure<float>(Stream stream, Shape const& s, float const* x, double epsilon,
                                                   Statistics<float> statistics, float* partial);
template void GroupNorm<HostSpace>::measure<double>(Stream stream, Shape const& s, double const* x, double epsilon,
                                                    Statistics<double> statistics, double* partial);
template void GroupNorm<HostSpace>::forward<float>(Stream stream, Shape const& s, float const* x,
                                                   Statistics<float> statistics, float const* weight, float const* bias,
                                                   Activation activation, float* y);
template void GroupNorm<HostSpace>::forward<double>(Stream stream, Shape const& s, double const* x,
                                                    Statistics<double> statistics, double const* weight,
                                                    double const* bias, Activation activation, double* y);
template void GroupNorm<HostSpace>::backward<float>(Stream stream, Shape const& s, float const* dy, float const* x,
                                                    Statistics<float> statistics, float const* weight,
                                                    float const* bias, Activation activation, float* dx, Write dx_write,
                                                    float* dweight, Write dweight_write, float* dbias,
                                                    Write dbias_write, float* partial);
template void GroupNorm<HostSpace>::backward<double>(Stream stream, Shape const& s, double const* dy, double const* x,
                                                     Statistics<double> statistics, double const* weight,
                                                     double const* bias, Activation activation, double* dx,
                                                     Write dx_write, double* dweight, Write dweight_write,
                                                     double* dbias, Write dbias_write, double* partial);
#endif

}}}  // namespace lockstep::kernel
