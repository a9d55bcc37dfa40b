// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/normalization/group_norm.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

template <class Scalar>
LOCKSTEP_INLINE void GroupNorm<HostSpace>::forward(Stream stream, Shape const& s, Scalar const* x, double epsilon,
                                                   Statistics<Scalar> statistics, Scalar const* weight,
                                                   Scalar const* bias, Activation activation, Scalar* y,
                                                   Scalar* partial) {
  auto const measure = [=](Index row, Index chunk, Index begin, Index end) {
    auto* const means = sums_of(s, partial, row, chunk);
    auto *const rests = means + s.channels, *const squares = rests + s.channels;
    auto const* const here = x + row * s.positions * s.channels;
    auto const count = static_cast<Scalar>(end - begin);
    std::fill_n(means, s.channels, Scalar{0});
    with_best_instructions([=](auto vectors) {
      detail::for_column_blocks<Scalar>(vectors, s.channels, begin, end,
                                        [=]<class Lane>(Index c, Index first, Index last) {
                                          Lane sum, next;
                                          detail::load(sum, means + c);
                                          for (Index p = first; p < last; ++p) {
                                            detail::load(next, here + p * s.channels + c);
                                            sum += next;
                                          }
                                          if (last == end) sum /= count;
                                          detail::store(means + c, sum);
                                        });
      bool corrected = false;
      for (int pass = 0; pass < 2 && !corrected; ++pass) {
        std::fill_n(rests, 2 * s.channels, Scalar{0});
        detail::for_column_blocks<Scalar>(vectors, s.channels, begin, end,
                                          [=]<class Lane>(Index c, Index first, Index last) {
                                            Lane center, rest, sum, next;
                                            detail::load(center, means + c);
                                            detail::load(rest, rests + c);
                                            detail::load(sum, squares + c);
                                            for (Index p = first; p < last; ++p) {
                                              detail::load(next, here + p * s.channels + c);
                                              next -= center;
                                              rest += next;  // the rounding error of the first sum
                                              sum += next * next;
                                            }
                                            detail::store(rests + c, rest);
                                            detail::store(squares + c, sum);
                                          });
        corrected = detail::correct_moments(means, squares, rests, count, s.channels);
      }
    });
  };
  auto const merge = [=](Index row) {
    for (Index first = 0; first < s.channels; first += s.group_channels()) {
      double count = 0, center = 0, squares = 0;
      for (Index chunk = 0; chunk < chunks(s); ++chunk) {
        auto const positions = std::min(chunk_positions(s), s.positions - chunk * chunk_positions(s));
        auto const here = static_cast<double>(positions), of_group = static_cast<double>(s.group_channels()) * here;
        auto const* const means = sums_of(s, partial, row, chunk);
        double mean = 0;
        for (Index c = first; c < first + s.group_channels(); ++c) mean += static_cast<double>(means[c]);
        mean /= static_cast<double>(s.group_channels());
        for (Index c = first; c < first + s.group_channels(); ++c) {
          double const off = static_cast<double>(means[c]) - mean;
          squares += static_cast<double>(means[2 * s.channels + c]) + off * off * here;
        }
        double const off = mean - center, all = count + of_group;
        center += off * of_group / all;
        squares += off * off * count * of_group / all;
        count = all;
      }
      double const variance = count > 0 ? squares / count : 0;
      auto const at = row * s.channels + first;
      std::fill_n(statistics.mean + at, s.group_channels(), static_cast<Scalar>(center));
      std::fill_n(statistics.reciprocal + at, s.group_channels(),
                  static_cast<Scalar>(1 / std::sqrt(variance + epsilon)));
    }
  };
  auto const normalize = [=](Index row, Index, Index begin, Index end) {
    auto const start = row * s.positions * s.channels;
    with_best_instructions([=](auto vectors) {
      detail::for_column_blocks<Scalar>(
          vectors, s.channels, begin, end, [=]<class Lane>(Index c, Index first, Index last) {
            Lane center, factor, of_weight, shift, out, zero;
            detail::clear(zero);
            detail::load(center, statistics.mean + row * s.channels + c);
            detail::load(factor, statistics.reciprocal + row * s.channels + c);
            detail::load(of_weight, weight + c);
            detail::load(shift, bias + c);
            factor *= of_weight;
            for (Index at = start + first * s.channels + c; at < start + last * s.channels; at += s.channels) {
              detail::load(out, x + at);
              out = (out - center) * factor + shift;
              if (activation == Activation::relu) out = out < zero ? zero : out;  // NaN stays NaN
              detail::store(y + at, out);
            }
          });
    });
  };
  in_two_passes(stream, s, measure, merge, normalize);
}

template <class Scalar>
LOCKSTEP_INLINE void GroupNorm<HostSpace>::backward(Stream stream, Shape const& s, Scalar const* dy, Scalar const* x,
                                                    Statistics<Scalar> statistics, Scalar const* weight,
                                                    Scalar const* bias, Activation activation, Scalar* dx,
                                                    Write dx_write, Scalar* dweight, Write dweight_write, Scalar* dbias,
                                                    Write dbias_write, Scalar* partial) {
  auto const add_up = [=](Index row, Index chunk, Index begin, Index end) {
    auto const start = row * s.positions * s.channels;
    auto *const sums = sums_of(s, partial, row, chunk), *const products = sums + s.channels;
    std::fill_n(sums, 2 * s.channels, Scalar{0});
    with_best_instructions([=](auto vectors) {
      detail::for_column_blocks<Scalar>(
          vectors, s.channels, begin, end, [=]<class Lane>(Index c, Index first, Index last) {
            Lane center, reciprocal, of_weight, shift, z, g, sum, product, zero;
            detail::clear(zero);
            detail::load(sum, sums + c);
            detail::load(product, products + c);
            detail::load(center, statistics.mean + row * s.channels + c);
            detail::load(reciprocal, statistics.reciprocal + row * s.channels + c);
            detail::load(of_weight, weight + c);
            detail::load(shift, bias + c);
            Lane const factor = reciprocal * of_weight;
            for (Index at = start + first * s.channels + c; at < start + last * s.channels; at += s.channels) {
              detail::load(z, x + at);
              detail::load(g, dy + at);
              z -= center;
              if (activation == Activation::relu) g = z * factor + shift > zero ? g : zero;
              sum += g;
              product += g * z;
            }
            if (last == end) product *= reciprocal;
            detail::store(sums + c, sum);
            detail::store(products + c, product);
          });
    });
  };
  // The sums of g and of g z over each sample replace its first chunk's; their means over groups follow all chunks.
  auto* const all_means = sums_of(s, partial, s.rows, 0);
  auto const merge = [=](Index row) {
    auto* const sums = sums_of(s, partial, row, 0);
    for (Index c = 0; c < 2 * s.channels; ++c) {
      double sum = 0;
      for (Index chunk = 0; chunk < chunks(s); ++chunk) sum += static_cast<double>(sums_of(s, partial, row, chunk)[c]);
      sums[c] = chunks(s) > 0 ? static_cast<Scalar>(sum) : Scalar{0};
    }
    for (Index first = 0; first < 2 * s.channels; first += s.group_channels()) {
      double sum = 0;
      for (Index c = first; c < first + s.group_channels(); ++c)
        sum += static_cast<double>(sums[c]) * static_cast<double>(weight[c % s.channels]);
      std::fill_n(all_means + 2 * row * s.channels + first, s.group_channels(),
                  static_cast<Scalar>(sum / static_cast<double>(s.group_size())));
    }
  };
  auto const differentiate = [=](Index row, Index, Index begin, Index end) {
    if (!dx) return;
    auto const start = row * s.positions * s.channels;
    auto const* const means = all_means + 2 * row * s.channels;
    with_best_instructions([=](auto vectors) {
      detail::for_column_blocks<Scalar>(
          vectors, s.channels, begin, end, [=]<class Lane>(Index c, Index first, Index last) {
            Lane center, reciprocal, of_weight, shift, mean_g, mean_gz, z, g, zero;
            detail::clear(zero);
            detail::load(center, statistics.mean + row * s.channels + c);
            detail::load(reciprocal, statistics.reciprocal + row * s.channels + c);
            detail::load(of_weight, weight + c);
            detail::load(shift, bias + c);
            detail::load(mean_g, means + c);
            detail::load(mean_gz, means + s.channels + c);
            mean_gz *= reciprocal;
            Lane const factor = reciprocal * of_weight;
            for (Index at = start + first * s.channels + c; at < start + last * s.channels; at += s.channels) {
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
  };
  in_two_passes(stream, s, add_up, merge, differentiate);
  for (Index c = 0; c < s.channels; ++c) {
    double g = 0, gz = 0;
    for (Index row = 0; row < s.rows; ++row) {
      g += static_cast<double>(sums_of(s, partial, row, 0)[c]);
      gz += static_cast<double>(sums_of(s, partial, row, 0)[s.channels + c]);
    }
    put(dbias[c], static_cast<Scalar>(g), dbias_write);
    put(dweight[c], static_cast<Scalar>(gz), dweight_write);
  }
}

template <class Scalar>
LOCKSTEP_INLINE Scalar* GroupNorm<HostSpace>::sums_of(Shape const& s, Scalar* partial, Index row,
                                                      Index chunk) noexcept {
  return partial + 3 * (row * std::max<Index>(1, chunks(s)) + chunk) * s.channels;
}

template <class First, class Between, class Second>
LOCKSTEP_INLINE void GroupNorm<HostSpace>::in_two_passes(Stream stream, Shape const& s, First const& first,
                                                         Between const& between, Second const& second) {
  auto& pool = stream.pool();
  auto const of_row = chunks(s), each = chunk_positions(s);
  auto const pass = [&](auto const& f, Index i) {
    auto const begin = i % of_row * each;
    f(i / of_row, i % of_row, begin, std::min(begin + each, s.positions));
  };
  if (of_row <= cached_chunks && s.rows >= pool.threads()) {
    auto const together = std::max<Index>(1, each / std::max<Index>(1, s.positions));  // number of small samples
    return pool.for_ranges(s.rows, together, [&](Index row, Index end) {
      for (; row < end; ++row) {
        for (Index chunk = 0; chunk < of_row; ++chunk) pass(first, row * of_row + chunk);
        between(row);
        for (Index chunk = 0; chunk < of_row; ++chunk) pass(second, row * of_row + chunk);
      }
    });
  }
  pool.for_ranges(s.rows * of_row, 1, [&](Index i, Index end) {
    for (; i < end; ++i) pass(first, i);
  });
  for (Index row = 0; row < s.rows; ++row) between(row);
  pool.for_ranges(s.rows * of_row, 1, [&](Index i, Index end) {
    for (; i < end; ++i) pass(second, i);
  });
}

template <class Scalar>
LOCKSTEP_INLINE void GroupNorm<HostSpace>::put(Scalar& to, Scalar value, Write how) noexcept {
  to = how == Write::add ? to + value : value;
}

// Instantiations in the library, for programs that link it.
#if defined(LOCKSTEP_COMPILED)
template void GroupNorm<HostSpace>::forward<float>(Stream stream, Shape const& s, float const* x, double epsilon,
                                                   Statistics<float> statistics, float const* weight, float const* bias,
                                                   Activation activation, float* y, float* partial);
template void GroupNorm<HostSpace>::forward<double>(Stream stream, Shape const& s, double const* x, double epsilon,
                                                    Statistics<double> statistics, double const* weight,
                                                    double const* bias, Activation activation, double* y,
                                                    double* partial);
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
