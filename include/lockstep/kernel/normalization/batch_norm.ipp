// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/normalization/batch_norm.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

template <class Scalar>
LOCKSTEP_INLINE void BatchNorm<HostSpace>::measure(Stream stream, Matrix<Scalar const> x, Vector<Scalar const> weight,
                                                   double epsilon, double momentum, Running<Scalar> running,
                                                   Statistics<Scalar> statistics, Scalar* partial,
                                                   Layout const& layout) {
  measure_chunks(stream, x, partial, layout);
  for (Index c = 0; c < x.extent[1]; ++c)
    update_statistics(c, merged<Scalar>(x.extent, partial, c), weight, epsilon, momentum, running, statistics);
}

template <class Scalar>
LOCKSTEP_INLINE void BatchNorm<HostSpace>::moments(Stream stream, Matrix<Scalar const> x, Scalar* partial, double* to,
                                                   Layout const& layout) {
  measure_chunks(stream, x, partial, layout);
  auto const width = x.extent[1];
  to[0] = static_cast<double>(detail::TokensBetween(layout, 0, x.extent[0]).count());
  for (Index c = 0; c < width; ++c) {
    auto const here = merged<Scalar>(x.extent, partial, c);
    to[1 + c] = here.mean;
    to[1 + width + c] = here.squares;
  }
}

template <class Scalar>
LOCKSTEP_INLINE void BatchNorm<HostSpace>::measure_merged(Stream, Index replicas, double const* moments,
                                                          Vector<Scalar const> weight, double epsilon, double momentum,
                                                          Running<Scalar> running, Statistics<Scalar> statistics) {
  auto const width = weight.size(), each = moment_elements(width);
  for (Index c = 0; c < width; ++c) {
    detail::Moments all;
    for (Index r = 0; r < replicas; ++r) {
      auto const* const of = moments + r * each;
      all.merge({of[0], of[1 + c], of[1 + width + c]});
    }
    update_statistics(c, all, weight, epsilon, momentum, running, statistics);
  }
}

template <class Scalar>
LOCKSTEP_INLINE void BatchNorm<HostSpace>::use_running_averages(Stream, Running<Scalar> running,
                                                                Vector<Scalar const> weight, double epsilon,
                                                                Statistics<Scalar> statistics) {
  for (Index c = 0; c < weight.size(); ++c)
    set(statistics, c, static_cast<double>(running.mean(c)), static_cast<double>(running.variance(c)), weight, epsilon);
}

template <class Scalar>
LOCKSTEP_INLINE void BatchNorm<HostSpace>::forward(Stream stream, Matrix<Scalar const> x, Statistics<Scalar> statistics,
                                                   Vector<Scalar const> bias, Activation activation, Matrix<Scalar> y,
                                                   Layout const& layout) {
  auto const rows = x.extent[0], width = x.extent[1];
  stream.pool().for_ranges(rows, chunk_rows(width), [=](Index begin, Index end) {
    clear_padding(layout, begin, end, y);
    for (auto const run : detail::TokensBetween(layout, begin, end))
      with_best_instructions([=](auto vectors) {
        detail::for_column_blocks<Scalar>(vectors, width, run.begin, run.end,
                                          [=]<class Lane>(Index c, Index first, Index last) {
                                            Lane center, factor, shift, out, zero;
                                            detail::clear(zero);
                                            detail::load(center, statistics.mean.data + c);
                                            detail::load(factor, statistics.scale.data + c);
                                            detail::load(shift, bias.data + c);
                                            for (Index r = first; r < last; ++r) {
                                              detail::load(out, x.data + r * width + c);
                                              out = (out - center) * factor + shift;
                                              if (activation == Activation::relu)
                                                out = out < zero ? zero : out;  // NaN stays NaN
                                              detail::store(y.data + r * width + c, out);
                                            }
                                          });
      });
  });
}

template <class Scalar>
LOCKSTEP_INLINE void BatchNorm<HostSpace>::backward(Stream stream, Matrix<Scalar const> dy, Matrix<Scalar const> x,
                                                    Statistics<Scalar> statistics, Vector<Scalar const> bias,
                                                    Activation activation, Matrix<Scalar> dx, Write dx_write,
                                                    Vector<Scalar> dweight, Write dweight_write, Vector<Scalar> dbias,
                                                    Write dbias_write, Scalar* partial, Layout const& layout) {
  auto const width = x.extent[1], count = detail::TokensBetween(layout, 0, x.extent[0]).count();
  sum_chunks(stream, dy, x, statistics, bias, activation, partial, layout);
  auto* const means = partial;  // of g, and of g z: they overwrite the first chunk's sums
  for (Index c = 0; c < width; ++c) {
    auto const [sum, products] = summed<Scalar>(x.extent, partial, c);
    write(dbias.data[c], static_cast<Scalar>(sum), dbias_write);
    write(dweight.data[c], static_cast<Scalar>(products), dweight_write);
    if (count == 0) continue;
    means[c] = static_cast<Scalar>(sum / static_cast<double>(count));
    means[width + c] = static_cast<Scalar>(products / static_cast<double>(count));
  }
  input_gradient(stream, dy, x, statistics, bias, activation, means, dx, dx_write, layout);
}

template <class Scalar>
LOCKSTEP_INLINE void BatchNorm<HostSpace>::sums(Stream stream, Matrix<Scalar const> dy, Matrix<Scalar const> x,
                                                Statistics<Scalar> statistics, Vector<Scalar const> bias,
                                                Activation activation, Vector<Scalar> dweight, Write dweight_write,
                                                Vector<Scalar> dbias, Write dbias_write, Scalar* partial, Scalar* to,
                                                Layout const& layout) {
  auto const width = x.extent[1];
  sum_chunks(stream, dy, x, statistics, bias, activation, partial, layout);
  for (Index c = 0; c < width; ++c) {
    auto const [sum, products] = summed<Scalar>(x.extent, partial, c);
    to[c] = static_cast<Scalar>(sum);
    to[width + c] = static_cast<Scalar>(products);
    write(dbias.data[c], to[c], dbias_write);
    write(dweight.data[c], to[width + c], dweight_write);
  }
}

template <class Scalar>
LOCKSTEP_INLINE void BatchNorm<HostSpace>::means(Stream, Index replicas, Index channels, Scalar const* sums,
                                                 double const* moments, Scalar* to) {
  double rows = 0;
  for (Index r = 0; r < replicas; ++r) rows += moments[r * moment_elements(channels)];
  for (Index i = 0; i < 2 * channels; ++i)
    to[i] =
        static_cast<Scalar>(tree_sum(static_cast<int>(replicas),
                                     [&](int r) { return static_cast<double>(sums[2 * channels * Index{r} + i]); }) /
                            std::max(rows, 1.0));
}

template <class Scalar>
LOCKSTEP_INLINE void BatchNorm<HostSpace>::input_gradient(Stream stream, Matrix<Scalar const> dy,
                                                          Matrix<Scalar const> x, Statistics<Scalar> statistics,
                                                          Vector<Scalar const> bias, Activation activation,
                                                          Scalar const* means, Matrix<Scalar> dx, Write dx_write,
                                                          Layout const& layout) {
  if (!dx.data) return;
  auto const rows = x.extent[0], width = x.extent[1];
  stream.pool().for_ranges(rows, chunk_rows(width), [=](Index begin, Index end) {
    if (dx_write == Write::overwrite) clear_padding(layout, begin, end, dx);
    for (auto const run : detail::TokensBetween(layout, begin, end))
      with_best_instructions([=](auto vectors) {
        detail::for_column_blocks<Scalar>(vectors, width, run.begin, run.end,
                                          [=]<class Lane>(Index c, Index first, Index last) {
                                            Lane center, factor, shift, reciprocal, mean_g, slope, in, g, zero;
                                            detail::clear(zero);
                                            detail::load(center, statistics.mean.data + c);
                                            detail::load(factor, statistics.scale.data + c);
                                            detail::load(shift, bias.data + c);
                                            detail::load(reciprocal, statistics.reciprocal.data + c);
                                            detail::load(mean_g, means + c);
                                            detail::load(slope, means + width + c);
                                            slope *= reciprocal;
                                            for (Index r = first; r < last; ++r) {
                                              detail::load(in, x.data + r * width + c);
                                              detail::load(g, dy.data + r * width + c);
                                              in -= center;
                                              if (activation == Activation::relu)
                                                g = in * factor + shift > zero ? g : zero;
                                              g = factor * (g - mean_g - in * slope);
                                              auto* const to = dx.data + r * width + c;
                                              if (dx_write == Write::add) {
                                                detail::load(in, to);
                                                g += in;
                                              }
                                              detail::store(to, g);
                                            }
                                          });
      });
  });
}

template <class Scalar>
LOCKSTEP_INLINE void BatchNorm<HostSpace>::measure_chunks(Stream stream, Matrix<Scalar const> x, Scalar* partial,
                                                          Layout const& layout) {
  auto const rows = x.extent[0], width = x.extent[1], each = chunk_rows(width);
  auto* const counts = partial + 3 * chunks(rows, width) * width;
  stream.pool().for_ranges(rows, each, [=](Index begin, Index end) {
    detail::TokensBetween const tokens(layout, begin, end);
    auto const counted = tokens.count();
    counts[begin / each] = static_cast<Scalar>(counted);
    auto* const means = partial + 3 * (begin / each) * width;
    auto *const squares = means + width, *const rests = squares + width;
    std::fill_n(means, width, Scalar{0});
    with_best_instructions([=](auto vectors) {
      auto const count = static_cast<Scalar>(std::max<Index>(1, counted));
      for (auto const run : tokens)
        detail::for_column_blocks<Scalar>(vectors, width, run.begin, run.end,
                                          [=]<class Lane>(Index c, Index first, Index last) {
                                            Lane sum, next;
                                            detail::load(sum, means + c);
                                            for (Index r = first; r < last; ++r) {
                                              detail::load(next, x.data + r * width + c);
                                              sum += next;
                                            }
                                            detail::store(means + c, sum);
                                          });
      for (Index c = 0; c < width; ++c) means[c] /= count;
      bool corrected = false;
      for (int pass = 0; pass < 2 && !corrected; ++pass) {
        std::fill_n(squares, 2 * width, Scalar{0});
        for (auto const run : tokens)
          detail::for_column_blocks<Scalar>(vectors, width, run.begin, run.end,
                                            [=]<class Lane>(Index c, Index first, Index last) {
                                              Lane center, rest, sum, next;
                                              detail::load(center, means + c);
                                              detail::load(rest, rests + c);
                                              detail::load(sum, squares + c);
                                              for (Index r = first; r < last; ++r) {
                                                detail::load(next, x.data + r * width + c);
                                                next -= center;
                                                rest += next;  // the rounding error of the first sum
                                                sum += next * next;
                                              }
                                              detail::store(rests + c, rest);
                                              detail::store(squares + c, sum);
                                            });
        corrected = detail::correct_moments(means, squares, rests, count, width);
      }
    });
  });
}

template <class Scalar>
LOCKSTEP_INLINE detail::Moments BatchNorm<HostSpace>::merged(Extents<2> x, Scalar const* partial, Index c) noexcept {
  auto const width = x[1], count = chunks(x[0], width);
  detail::Moments all;
  for (Index chunk = 0; chunk < count; ++chunk) {
    auto const* const sums = partial + 3 * chunk * width + c;
    all.merge({static_cast<double>(partial[3 * count * width + chunk]), static_cast<double>(sums[0]),
               static_cast<double>(sums[width])});
  }
  return all;
}

template <class Scalar>
LOCKSTEP_INLINE void BatchNorm<HostSpace>::update_statistics(Index c, detail::Moments const& all,
                                                             Vector<Scalar const> weight, double epsilon,
                                                             double momentum, Running<Scalar> running,
                                                             Statistics<Scalar> statistics) {
  set(statistics, c, all.mean, all.count > 0 ? all.squares / all.count : 0, weight, epsilon);
  if (all.count < 2) return;
  auto const update_average = [=](Scalar& average, double to) {
    average = static_cast<Scalar>((1 - momentum) * static_cast<double>(average) + momentum * to);
  };
  update_average(running.mean(c), all.mean);
  update_average(running.variance(c), all.squares / (all.count - 1));
}

template <class Scalar>
LOCKSTEP_INLINE void BatchNorm<HostSpace>::sum_chunks(Stream stream, Matrix<Scalar const> dy, Matrix<Scalar const> x,
                                                      Statistics<Scalar> statistics, Vector<Scalar const> bias,
                                                      Activation activation, Scalar* partial, Layout const& layout) {
  auto const rows = x.extent[0], width = x.extent[1], each = chunk_rows(width);
  stream.pool().for_ranges(rows, each, [=](Index begin, Index end) {
    detail::TokensBetween const tokens(layout, begin, end);
    auto *const sums = partial + 3 * (begin / each) * width, *const products = sums + width;
    std::fill_n(sums, 2 * width, Scalar{0});
    with_best_instructions([=](auto vectors) {
      for (auto const run : tokens)
        detail::for_column_blocks<Scalar>(vectors, width, run.begin, run.end,
                                          [=]<class Lane>(Index c, Index first, Index last) {
                                            Lane center, factor, shift, in, g, sum, product, zero;
                                            detail::clear(zero);
                                            detail::load(sum, sums + c);
                                            detail::load(product, products + c);
                                            detail::load(center, statistics.mean.data + c);
                                            detail::load(factor, statistics.scale.data + c);
                                            detail::load(shift, bias.data + c);
                                            for (Index r = first; r < last; ++r) {
                                              detail::load(in, x.data + r * width + c);
                                              detail::load(g, dy.data + r * width + c);
                                              in -= center;
                                              if (activation == Activation::relu)
                                                g = in * factor + shift > zero ? g : zero;
                                              sum += g;
                                              product += g * in;
                                            }
                                            detail::store(sums + c, sum);
                                            detail::store(products + c, product);
                                          });
      for (Index c = 0; c < width; ++c) products[c] *= statistics.reciprocal.data[c];
    });
  });
}

template <class Scalar>
LOCKSTEP_INLINE std::pair<double, double> BatchNorm<HostSpace>::summed(Extents<2> x, Scalar const* partial,
                                                                       Index c) noexcept {
  double sum = 0, products = 0;
  for (Index chunk = 0; chunk < chunks(x[0], x[1]); ++chunk) {
    sum += static_cast<double>(partial[3 * chunk * x[1] + c]);
    products += static_cast<double>(partial[(3 * chunk + 1) * x[1] + c]);
  }
  return {sum, products};
}

template <class Scalar>
LOCKSTEP_INLINE void BatchNorm<HostSpace>::clear_padding(Layout const& layout, Index begin, Index end,
                                                         Matrix<Scalar> y) noexcept {
  for (auto const width = y.extent[1]; begin < end;) {
    auto const run = detail::next_tokens(layout, begin, end);
    std::fill_n(y.data + begin * width, (run.begin - begin) * width, Scalar{0});
    begin = run.end;
  }
}

template <class Scalar>
LOCKSTEP_INLINE void BatchNorm<HostSpace>::set(Statistics<Scalar> const& to, Index c, double mean, double variance,
                                               Vector<Scalar const> weight, double epsilon) {
  double const reciprocal = 1 / std::sqrt(variance + epsilon);
  to.mean(c) = static_cast<Scalar>(mean);
  to.reciprocal(c) = static_cast<Scalar>(reciprocal);
  to.scale(c) = static_cast<Scalar>(reciprocal * static_cast<double>(weight(c)));
}

template <class Scalar>
LOCKSTEP_INLINE void BatchNorm<HostSpace>::write(Scalar& to, Scalar value, Write how) noexcept {
  to = how == Write::add ? to + value : value;
}

// Instantiations in the library, for programs that link it.
#if defined(LOCKSTEP_COMPILED)
template void BatchNorm<HostSpace>::measure<float>(Stream stream, Matrix<float const> x, Vector<float const> weight,
                                                   double epsilon, double momentum, Running<float> running,
                                                   Statistics<float> statistics, float* partial, Layout const& layout);
template void BatchNorm<HostSpace>::measure<double>(Stream stream, Matrix<double const> x, Vector<double const> weight,
                                                    double epsilon, double momentum, Running<double> running,
                                                    Statistics<double> statistics, double* partial,
                                                    Layout const& layout);
template void BatchNorm<HostSpace>::moments<float>(Stream stream, Matrix<float const> x, float* partial, double* to,
                                                   Layout const& layout);
template void BatchNorm<HostSpace>::moments<double>(Stream stream, Matrix<double const> x, double* partial, double* to,
                                                    Layout const& layout);
template void BatchNorm<HostSpace>::measure_merged<float>(Stream, Index replicas, double const* moments,
                                                          Vector<float const> weight, double epsilon, double momentum,
                                                          Running<float> running, Statistics<float> statistics);
template void BatchNorm<HostSpace>::measure_merged<double>(Stream, Index replicas, double const* moments,
                                                           Vector<double const> weight, double epsilon, double momentum,
                                                           Running<double> running, Statistics<double> statistics);
template void BatchNorm<HostSpace>::use_running_averages<float>(Stream, Running<float> running,
                                                                Vector<float const> weight, double epsilon,
                                                                Statistics<float> statistics);
template void BatchNorm<HostSpace>::use_running_averages<double>(Stream, Running<double> running,
                                                                 Vector<double const> weight, double epsilon,
                                                                 Statistics<double> statistics);
template void BatchNorm<HostSpace>::forward<float>(Stream stream, Matrix<float const> x, Statistics<float> statistics,
                                                   Vector<float const> bias, Activation activation, Matrix<float> y,
                                                   Layout const& layout);
template void BatchNorm<HostSpace>::forward<double>(Stream stream, Matrix<double const> x,
                                                    Statistics<double> statistics, Vector<double const> bias,
                                                    Activation activation, Matrix<double> y, Layout const& layout);
template void BatchNorm<HostSpace>::backward<float>(Stream stream, Matrix<float const> dy, Matrix<float const> x,
                                                    Statistics<float> statistics, Vector<float const> bias,
                                                    Activation activation, Matrix<float> dx, Write dx_write,
                                                    Vector<float> dweight, Write dweight_write, Vector<float> dbias,
                                                    Write dbias_write, float* partial, Layout const& layout);
template void BatchNorm<HostSpace>::backward<double>(Stream stream, Matrix<double const> dy, Matrix<double const> x,
                                                     Statistics<double> statistics, Vector<double const> bias,
                                                     Activation activation, Matrix<double> dx, Write dx_write,
                                                     Vector<double> dweight, Write dweight_write, Vector<double> dbias,
                                                     Write dbias_write, double* partial, Layout const& layout);
template void BatchNorm<HostSpace>::sums<float>(Stream stream, Matrix<float const> dy, Matrix<float const> x,
                                                Statistics<float> statistics, Vector<float const> bias,
                                                Activation activation, Vector<float> dweight, Write dweight_write,
                                                Vector<float> dbias, Write dbias_write, float* partial, float* to,
                                                Layout const& layout);
template void BatchNorm<HostSpace>::sums<double>(Stream stream, Matrix<double const> dy, Matrix<double const> x,
                                                 Statistics<double> statistics, Vector<double const> bias,
                                                 Activation activation, Vector<double> dweight, Write dweight_write,
                                                 Vector<double> dbias, Write dbias_write, double* partial, double* to,
                                                 Layout const& layout);
template void BatchNorm<HostSpace>::means<float>(Stream, Index replicas, Index channels, float const* sums,
                                                 double const* moments, float* to);
template void BatchNorm<HostSpace>::means<double>(Stream, Index replicas, Index channels, double const* sums,
                                                  double const* moments, double* to);
template void BatchNorm<HostSpace>::input_gradient<float>(Stream stream, Matrix<float const> dy, Matrix<float const> x,
                                                          Statistics<float> statistics, Vector<float const> bias,
                                                          Activation activation, float const* means, Matrix<float> dx,
                                                          Write dx_write, Layout const& layout);
template void BatchNorm<HostSpace>::input_gradient<double>(Stream stream, Matrix<double const> dy,
                                                           Matrix<double const> x, Statistics<double> statistics,
                                                           Vector<double const> bias, Activation activation,
                                                           double const* means, Matrix<double> dx, Write dx_write,
                                                           Layout const& layout);
#endif

}}}  // namespace lockstep::kernel
