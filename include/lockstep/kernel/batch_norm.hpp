// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/activation.hpp>
#include <lockstep/kernel/detail/column_lanes.hpp>
#include <lockstep/kernel/write.hpp>
#include <lockstep/memory/stream.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel {

/// Normalisation of each channel over all samples and places.
template <class Space>
struct BatchNorm {
  static_assert(sizeof(Space) == 0, "Lockstep: BatchNorm in this space needs lockstep/cuda.cuh, compiled with nvcc");
};

template <>
struct BatchNorm<HostSpace> {
  using Stream = memory::Stream<HostSpace>;
  template <class T>
  using Matrix = TensorView<T, 2, HostSpace>;
  template <class T>
  using Vector = TensorView<T, 1, HostSpace>;

  /// What normalises each channel: mean, reciprocal = 1 / sqrt(variance + epsilon), scale = weight * reciprocal.
  template <class T>
  struct Statistics {
    Vector<T> mean, reciprocal, scale;  // [channels]
  };
  /// The averages that evaluation uses.
  template <class T>
  struct Running {
    Vector<T> mean, variance;  // [channels]
  };

  /// How many elements `measure` and `backward` need for their partial sums.
  [[nodiscard]] static constexpr Index partial_elements(Index rows, Index channels) noexcept {
    return 2 * chunks(rows, channels) * channels;
  }

  /// The statistics of x, variance = sum (x - mean)^2 / rows, without cancellation: each chunk of rows is centred on
  /// its own mean while in cache, and the chunks are merged in order, in double. The running averages move by
  /// `momentum` towards mean and variance * rows / (rows - 1), but not for fewer than two rows.
  /// @shape x [rows, channels]   @shape weight [channels]   @shape partial [partial_elements(rows, channels)]
  /// @determinism bitwise, for any number of threads
  /// @source Chan, Golub, LeVeque: Updating formulae and a pairwise algorithm for computing sample variances (1979)
  template <class T>
  static void measure(Stream stream, Matrix<T const> x, Vector<T const> weight, double epsilon, double momentum,
                      Running<T> running, Statistics<T> statistics, T* partial) {
    auto const rows = x.extent[0], width = x.extent[1], each = chunk_rows(width);
    stream.pool().for_ranges(rows, each, [=](Index begin, Index end) {
      with_best_instructions([=](auto vectors) {
        auto* const sums = partial + 2 * (begin / each) * width;
        detail::for_column_lanes<T>(vectors, width, [=]<class V>(Index c) {
          V sum, squares, next;
          detail::clear(sum);
          detail::clear(squares);
          for (Index r = begin; r < end; ++r) {
            detail::load(next, x.data + r * width + c);
            sum += next;
          }
          V const center = sum / static_cast<T>(end - begin);
          for (Index r = begin; r < end; ++r) {
            detail::load(next, x.data + r * width + c);
            next -= center;
            squares += next * next;
          }
          detail::store(sums + c, center);
          detail::store(sums + width + c, squares);
        });
      });
    });
    auto const move = [=](T& average, double to) {
      average = static_cast<T>((1 - momentum) * static_cast<double>(average) + momentum * to);
    };
    for (Index c = 0; c < width; ++c) {
      double center = 0, squares = 0;
      for (Index begin = 0; begin < rows; begin += each) {
        auto const* const sums = partial + 2 * (begin / each) * width + c;
        auto const here = static_cast<double>(std::min(each, rows - begin)), before = static_cast<double>(begin);
        double const off = static_cast<double>(sums[0]) - center;
        center += off * here / (before + here);
        squares += static_cast<double>(sums[width]) + off * off * before * here / (before + here);
      }
      set(statistics, c, center, rows > 0 ? squares / static_cast<double>(rows) : 0, weight, epsilon);
      if (rows < 2) continue;
      move(running.mean(c), center);
      move(running.variance(c), squares / static_cast<double>(rows - 1));
    }
  }

  /// The statistics that the running averages give.
  template <class T>
  static void recall(Stream, Running<T> running, Vector<T const> weight, double epsilon, Statistics<T> statistics) {
    for (Index c = 0; c < weight.size(); ++c)
      set(statistics, c, static_cast<double>(running.mean(c)), static_cast<double>(running.variance(c)), weight,
          epsilon);
  }

  /// y = activation((x - mean) * scale + bias).
  /// @shape x, y [rows, channels]; y may be x   @shape bias [channels]
  /// @determinism bitwise, for any number of threads
  template <class T>
  static void forward(Stream stream, Matrix<T const> x, Statistics<T> statistics, Vector<T const> bias,
                      Activation activation, Matrix<T> y) {
    auto const rows = x.extent[0], width = x.extent[1];
    stream.pool().for_ranges(rows, chunk_rows(width), [=](Index begin, Index end) {
      with_best_instructions([=](auto vectors) {
        detail::for_column_lanes<T>(vectors, width, [=]<class V>(Index c) {
          V center, factor, shift, out, zero;
          detail::clear(zero);
          detail::load(center, statistics.mean.data + c);
          detail::load(factor, statistics.scale.data + c);
          detail::load(shift, bias.data + c);
          for (Index r = begin; r < end; ++r) {
            detail::load(out, x.data + r * width + c);
            out = (out - center) * factor + shift;
            if (activation == Activation::relu) out = out < zero ? zero : out;  // a nan stays
            detail::store(y.data + r * width + c, out);
          }
        });
      });
    });
  }

  /// With g = dy where the activation let y pass, else 0, over n rows, and z = (x - mean) * reciprocal:
  /// dbias = sum g; dweight = sum g z; dx = scale * (g - dbias / n - z dweight / n); each overwritten or added to. A
  /// null dx is left out. What the activation let pass is computed anew, so y is not kept.
  /// @shape dy, x, dx [rows, channels]; dx may be dy   @shape bias, dweight, dbias [channels]
  /// @shape partial [partial_elements(rows, channels)], overwritten
  /// @determinism bitwise, for any number of threads
  template <class T>
  static void backward(Stream stream, Matrix<T const> dy, Matrix<T const> x, Statistics<T> statistics,
                       Vector<T const> bias, Activation activation, Matrix<T> dx, Write dx_write, Vector<T> dweight,
                       Write dweight_write, Vector<T> dbias, Write dbias_write, T* partial) {
    auto const rows = x.extent[0], width = x.extent[1], each = chunk_rows(width), count = chunks(rows, width);
    stream.pool().for_ranges(rows, each, [=](Index begin, Index end) {
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
          for (Index r = begin; r < end; ++r) {
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
    auto* const means = partial;  // of g, and of g z: they take the place of the first chunk's sums
    for (Index c = 0; c < width; ++c) {
      double sum = 0, products = 0;
      for (Index chunk = 0; chunk < count; ++chunk) {
        sum += static_cast<double>(partial[2 * chunk * width + c]);
        products += static_cast<double>(partial[(2 * chunk + 1) * width + c]);
      }
      write(dbias.data[c], static_cast<T>(sum), dbias_write);
      write(dweight.data[c], static_cast<T>(products), dweight_write);
      if (count == 0) continue;
      means[c] = static_cast<T>(sum / static_cast<double>(rows));
      means[width + c] = static_cast<T>(products / static_cast<double>(rows));
    }
    if (!dx.data) return;
    stream.pool().for_ranges(rows, each, [=](Index begin, Index end) {
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
          for (Index r = begin; r < end; ++r) {
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
  /// Rows that share a partial sum: what stays in the first two caches for a second pass.
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

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
