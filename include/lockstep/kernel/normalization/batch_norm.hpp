// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <utility>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/core/tree_sum.hpp>
#include <lockstep/kernel/activation.hpp>
#include <lockstep/kernel/detail/column_lanes.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/normalization/detail/moments.hpp>
#include <lockstep/kernel/normalization/detail/tokens_between.hpp>
#include <lockstep/kernel/sequence_layout.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Normalisation of each channel over all samples and positions. With a layout, rows that are not tokens are neither
/// read nor counted.
template <class Space>
struct BatchNorm : detail::NotIncluded<Space> {};

template <>
struct BatchNorm<HostSpace> : detail::KernelTypes<HostSpace> {
  using Layout = SequenceLayout<HostSpace>;

  /// Statistics that normalise each channel: mean, reciprocal = 1 / sqrt(variance + epsilon), scale = weight *
  /// reciprocal.
  template <class T>
  struct Statistics {
    Vector<T> mean, reciprocal, scale;  // [channels]
  };
  /// Running averages for evaluation.
  template <class T>
  struct Running {
    Vector<T> mean, variance;  // [channels]
  };

  /// Returns the number of elements that `measure`, `moments`, `backward` and `sums` need for their partial sums.
  [[nodiscard]] static constexpr Index partial_elements(Index rows, Index channels) noexcept {
    return chunks(rows, channels) * (2 * channels + 1);
  }
  /// Returns the length of one replica's moments: number of rows, then the mean of each channel, then its squares.
  [[nodiscard]] static constexpr Index moment_elements(Index channels) noexcept { return 1 + 2 * channels; }

  /// Computes the statistics of x, with variance = sum (x - mean)^2 / rows, without cancellation. Centres each chunk of
  /// rows on its own mean while in cache, and merges the chunks in order, in double. Updates the running averages with
  /// weight `momentum` by mean and variance * rows / (rows - 1), if there are at least two rows. Uses all rows, or the
  /// tokens of the layout.
  /// @shape x [rows, channels]   @shape weight [channels]   @shape partial [partial_elements(rows, channels)]
  /// @determinism bitwise, for any number of threads
  /// @source Chan, Golub, LeVeque: Updating formulae and a pairwise algorithm for computing sample variances (1979)
  template <class T>
  static void measure(Stream stream, Matrix<T const> x, Vector<T const> weight, double epsilon, double momentum,
                      Running<T> running, Statistics<T> statistics, T* partial, Layout const& layout = {}) {
    measure_chunks(stream, x, partial, layout);
    for (Index c = 0; c < x.extent[1]; ++c)
      update_statistics(c, merged<T>(x.extent, partial, c), weight, epsilon, momentum, running, statistics);
  }

  /// First half of `measure` over the rows of several replicas: computes the moments of this replica's rows.
  /// @shape to [moment_elements(channels)]
  template <class T>
  static void moments(Stream stream, Matrix<T const> x, T* partial, double* to, Layout const& layout = {}) {
    measure_chunks(stream, x, partial, layout);
    auto const width = x.extent[1];
    to[0] = static_cast<double>(detail::TokensBetween(layout, 0, x.extent[0]).count());
    for (Index c = 0; c < width; ++c) {
      auto const here = merged<T>(x.extent, partial, c);
      to[1 + c] = here.mean;
      to[1 + width + c] = here.squares;
    }
  }
  /// Second half: merges the moments of all replicas in order and computes the statistics.
  /// @shape moments [replicas, moment_elements(channels)]
  template <class T>
  static void measure_merged(Stream, Index replicas, double const* moments, Vector<T const> weight, double epsilon,
                             double momentum, Running<T> running, Statistics<T> statistics) {
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

  /// Computes the statistics from the running averages.
  template <class T>
  static void use_running_averages(Stream, Running<T> running, Vector<T const> weight, double epsilon,
                                   Statistics<T> statistics) {
    for (Index c = 0; c < weight.size(); ++c)
      set(statistics, c, static_cast<double>(running.mean(c)), static_cast<double>(running.variance(c)), weight,
          epsilon);
  }

  /// Computes y = activation((x - mean) * scale + bias).
  /// @shape x, y [rows, channels]; y may be x, and is zero in padding   @shape bias [channels]
  /// @determinism bitwise, for any number of threads
  template <class T>
  static void forward(Stream stream, Matrix<T const> x, Statistics<T> statistics, Vector<T const> bias,
                      Activation activation, Matrix<T> y, Layout const& layout = {}) {
    auto const rows = x.extent[0], width = x.extent[1];
    stream.pool().for_ranges(rows, chunk_rows(width), [=](Index begin, Index end) {
      clear_padding(layout, begin, end, y);
      for (auto const run : detail::TokensBetween(layout, begin, end))
        with_best_instructions([=](auto vectors) {
          detail::for_column_lanes<T>(vectors, width, [=]<class V>(Index c) {
            V center, factor, shift, out, zero;
            detail::clear(zero);
            detail::load(center, statistics.mean.data + c);
            detail::load(factor, statistics.scale.data + c);
            detail::load(shift, bias.data + c);
            for (Index r = run.begin; r < run.end; ++r) {
              detail::load(out, x.data + r * width + c);
              out = (out - center) * factor + shift;
              if (activation == Activation::relu) out = out < zero ? zero : out;  // NaN stays NaN
              detail::store(y.data + r * width + c, out);
            }
          });
        });
    });
  }

  /// Computes the gradients for n rows. Let g = dy where the activation passed y, else 0, and z = (x - mean) *
  /// reciprocal. Then dbias = sum g, dweight = sum g z, and dx = scale * (g - dbias / n - z dweight / n). Overwrites or
  /// adds to each. Skips a null dx. Recomputes which elements the activation passed, so y is not kept.
  /// @shape dy, x, dx [rows, channels]; dx may be dy, and is zero in padding   @shape bias, dweight, dbias [channels]
  /// @shape partial [partial_elements(rows, channels)], overwritten
  /// @determinism bitwise, for any number of threads
  template <class T>
  static void backward(Stream stream, Matrix<T const> dy, Matrix<T const> x, Statistics<T> statistics,
                       Vector<T const> bias, Activation activation, Matrix<T> dx, Write dx_write, Vector<T> dweight,
                       Write dweight_write, Vector<T> dbias, Write dbias_write, T* partial, Layout const& layout = {}) {
    auto const width = x.extent[1], count = detail::TokensBetween(layout, 0, x.extent[0]).count();
    sum_chunks(stream, dy, x, statistics, bias, activation, partial, layout);
    auto* const means = partial;  // of g, and of g z: they overwrite the first chunk's sums
    for (Index c = 0; c < width; ++c) {
      auto const [sum, products] = summed<T>(x.extent, partial, c);
      write(dbias.data[c], static_cast<T>(sum), dbias_write);
      write(dweight.data[c], static_cast<T>(products), dweight_write);
      if (count == 0) continue;
      means[c] = static_cast<T>(sum / static_cast<double>(count));
      means[width + c] = static_cast<T>(products / static_cast<double>(count));
    }
    input_gradient(stream, dy, x, statistics, bias, activation, means, dx, dx_write, layout);
  }

  /// First of three steps of `backward` over the rows of several replicas: computes this replica's sums, which are also
  /// its dbias and dweight.
  /// @shape to [2, channels]: of g, and of g z
  template <class T>
  static void sums(Stream stream, Matrix<T const> dy, Matrix<T const> x, Statistics<T> statistics, Vector<T const> bias,
                   Activation activation, Vector<T> dweight, Write dweight_write, Vector<T> dbias, Write dbias_write,
                   T* partial, T* to, Layout const& layout = {}) {
    auto const width = x.extent[1];
    sum_chunks(stream, dy, x, statistics, bias, activation, partial, layout);
    for (Index c = 0; c < width; ++c) {
      auto const [sum, products] = summed<T>(x.extent, partial, c);
      to[c] = static_cast<T>(sum);
      to[width + c] = static_cast<T>(products);
      write(dbias.data[c], to[c], dbias_write);
      write(dweight.data[c], to[width + c], dweight_write);
    }
  }
  /// Second step: computes the means of all replicas' sums over the rows that their moments count.
  /// @shape sums [replicas, 2, channels]   @shape to [2, channels]   @shape moments as in `measure_merged`
  template <class T>
  static void means(Stream, Index replicas, Index channels, T const* sums, double const* moments, T* to) {
    double rows = 0;
    for (Index r = 0; r < replicas; ++r) rows += moments[r * moment_elements(channels)];
    for (Index i = 0; i < 2 * channels; ++i)
      to[i] = static_cast<T>(tree_sum(static_cast<int>(replicas),
                                      [&](int r) { return static_cast<double>(sums[2 * channels * Index{r} + i]); }) /
                             std::max(rows, 1.0));
  }
  /// Third step: computes this replica's dx from the means.
  /// @shape means [2, channels]
  template <class T>
  static void input_gradient(Stream stream, Matrix<T const> dy, Matrix<T const> x, Statistics<T> statistics,
                             Vector<T const> bias, Activation activation, T const* means, Matrix<T> dx, Write dx_write,
                             Layout const& layout = {}) {
    if (!dx.data) return;
    auto const rows = x.extent[0], width = x.extent[1];
    stream.pool().for_ranges(rows, chunk_rows(width), [=](Index begin, Index end) {
      if (dx_write == Write::overwrite) clear_padding(layout, begin, end, dx);
      for (auto const run : detail::TokensBetween(layout, begin, end))
        with_best_instructions([=](auto vectors) {
          detail::for_column_lanes<T>(vectors, width, [=]<class V>(Index c) {
            V center, factor, shift, reciprocal, mean_g, slope, in, g, zero;
            detail::clear(zero);
            detail::load(center, statistics.mean.data + c);
            detail::load(factor, statistics.scale.data + c);
            detail::load(shift, bias.data + c);
            detail::load(reciprocal, statistics.reciprocal.data + c);
            detail::load(mean_g, means + c);
            detail::load(slope, means + width + c);
            slope *= reciprocal;
            for (Index r = run.begin; r < run.end; ++r) {
              detail::load(in, x.data + r * width + c);
              detail::load(g, dy.data + r * width + c);
              in -= center;
              if (activation == Activation::relu) g = in * factor + shift > zero ? g : zero;
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

 private:
  /// Computes for each chunk of rows the mean and the squares of the differences from it, then the chunks' numbers of
  /// rows.
  template <class T>
  static void measure_chunks(Stream stream, Matrix<T const> x, T* partial, Layout const& layout) {
    auto const rows = x.extent[0], width = x.extent[1], each = chunk_rows(width);
    auto* const counts = partial + 2 * chunks(rows, width) * width;
    stream.pool().for_ranges(rows, each, [=](Index begin, Index end) {
      detail::TokensBetween const tokens(layout, begin, end);
      auto const counted = tokens.count();
      counts[begin / each] = static_cast<T>(counted);
      with_best_instructions([=](auto vectors) {
        auto* const sums = partial + 2 * (begin / each) * width;
        detail::for_column_lanes<T>(vectors, width, [=]<class V>(Index c) {
          V sum, rest, squares, next;
          detail::clear(sum);
          detail::clear(rest);
          detail::clear(squares);
          for (auto const run : tokens)
            for (Index r = run.begin; r < run.end; ++r) {
              detail::load(next, x.data + r * width + c);
              sum += next;
            }
          auto const count = static_cast<T>(std::max<Index>(1, counted));
          V center = sum / count;
          for (auto const run : tokens)
            for (Index r = run.begin; r < run.end; ++r) {
              detail::load(next, x.data + r * width + c);
              next -= center;
              rest += next;  // the rounding error of the first sum
              squares += next * next;
            }
          squares -= rest * rest / count;
          center += rest / count;
          detail::store(sums + c, center);
          detail::store(sums + width + c, squares);
        });
      });
    });
  }
  /// Returns a channel's moments, merged over all chunks in order.
  template <class T>
  [[nodiscard]] static detail::Moments merged(Extents<2> x, T const* partial, Index c) noexcept {
    auto const width = x[1], count = chunks(x[0], width);
    detail::Moments all;
    for (Index chunk = 0; chunk < count; ++chunk) {
      auto const* const sums = partial + 2 * chunk * width + c;
      all.merge({static_cast<double>(partial[2 * count * width + chunk]), static_cast<double>(sums[0]),
                 static_cast<double>(sums[width])});
    }
    return all;
  }
  template <class T>
  static void update_statistics(Index c, detail::Moments const& all, Vector<T const> weight, double epsilon,
                                double momentum, Running<T> running, Statistics<T> statistics) {
    set(statistics, c, all.mean, all.count > 0 ? all.squares / all.count : 0, weight, epsilon);
    if (all.count < 2) return;
    auto const update_average = [=](T& average, double to) {
      average = static_cast<T>((1 - momentum) * static_cast<double>(average) + momentum * to);
    };
    update_average(running.mean(c), all.mean);
    update_average(running.variance(c), all.squares / (all.count - 1));
  }
  /// Computes for each chunk of rows the sums of g and of g z.
  template <class T>
  static void sum_chunks(Stream stream, Matrix<T const> dy, Matrix<T const> x, Statistics<T> statistics,
                         Vector<T const> bias, Activation activation, T* partial, Layout const& layout) {
    auto const rows = x.extent[0], width = x.extent[1], each = chunk_rows(width);
    stream.pool().for_ranges(rows, each, [=](Index begin, Index end) {
      detail::TokensBetween const tokens(layout, begin, end);
      with_best_instructions([=](auto vectors) {
        auto* const sums = partial + 2 * (begin / each) * width;
        detail::for_column_lanes<T>(vectors, width, [=]<class V>(Index c) {
          V center, factor, shift, reciprocal, in, g, sum, products, zero;
          detail::clear(sum);
          detail::clear(products);
          detail::clear(zero);
          detail::load(center, statistics.mean.data + c);
          detail::load(factor, statistics.scale.data + c);
          detail::load(shift, bias.data + c);
          detail::load(reciprocal, statistics.reciprocal.data + c);
          for (auto const run : tokens)
            for (Index r = run.begin; r < run.end; ++r) {
              detail::load(in, x.data + r * width + c);
              detail::load(g, dy.data + r * width + c);
              in -= center;
              if (activation == Activation::relu) g = in * factor + shift > zero ? g : zero;
              sum += g;
              products += g * in;
            }
          products *= reciprocal;
          detail::store(sums + c, sum);
          detail::store(sums + width + c, products);
        });
      });
    });
  }
  /// Returns a channel's sums over all chunks, in order.
  template <class T>
  [[nodiscard]] static std::pair<double, double> summed(Extents<2> x, T const* partial, Index c) noexcept {
    double sum = 0, products = 0;
    for (Index chunk = 0; chunk < chunks(x[0], x[1]); ++chunk) {
      sum += static_cast<double>(partial[2 * chunk * x[1] + c]);
      products += static_cast<double>(partial[(2 * chunk + 1) * x[1] + c]);
    }
    return {sum, products};
  }
  /// Sets rows that are not tokens to zero.
  template <class T>
  static void clear_padding(Layout const& layout, Index begin, Index end, Matrix<T> y) noexcept {
    for (auto const width = y.extent[1]; begin < end;) {
      auto const run = detail::next_tokens(layout, begin, end);
      std::fill_n(y.data + begin * width, (run.begin - begin) * width, T{0});
      begin = run.end;
    }
  }
  /// Returns the rows that share a partial sum: as many as stay in the first two caches for a second pass.
  [[nodiscard]] static constexpr Index chunk_rows(Index channels) noexcept {
    return std::max<Index>(1, 16384 / std::max<Index>(1, channels));
  }
  [[nodiscard]] static constexpr Index chunks(Index rows, Index channels) noexcept {
    return (rows + chunk_rows(channels) - 1) / chunk_rows(channels);
  }
  template <class T>
  static void set(Statistics<T> const& to, Index c, double mean, double variance, Vector<T const> weight,
                  double epsilon) {
    double const reciprocal = 1 / std::sqrt(variance + epsilon);
    to.mean(c) = static_cast<T>(mean);
    to.reciprocal(c) = static_cast<T>(reciprocal);
    to.scale(c) = static_cast<T>(reciprocal * static_cast<double>(weight(c)));
  }
  template <class T>
  static void write(T& to, T value, Write how) noexcept {
    to = how == Write::add ? to + value : value;
  }
};

}}}  // namespace lockstep::kernel
