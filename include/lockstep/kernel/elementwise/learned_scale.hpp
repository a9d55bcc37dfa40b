// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/activation_rules.hpp>
#include <lockstep/kernel/detail/in_place.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/detail/lanes.hpp>
#include <lockstep/kernel/detail/write_each.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// A factor e^s whose logarithm s is learned, limited to `maximum`. For the host and devices.
struct LearnedFactor {
  double maximum;      ///< upper bound of the factor
  double log_maximum;  ///< upper bound of s

  /// Returns the factor for s.
  template <class Scalar>
  [[nodiscard]] constexpr Scalar of(Scalar s) const noexcept {
    return s > static_cast<Scalar>(log_maximum) ? static_cast<Scalar>(maximum) : Exp{}(s);
  }
  /// Returns the gradient of s. `sum` is the sum over the elements of each gradient times the multiplied value. If s is
  /// above its limit, returns zero unless a descent step would decrease s.
  template <class Scalar>
  [[nodiscard]] constexpr Scalar gradient(Scalar s, double sum) const noexcept {
    Scalar const all = of(s) * static_cast<Scalar>(sum);
    return s > static_cast<Scalar>(log_maximum) && all < 0 ? Scalar{0} : all;
  }
};

/// A tensor times a learned factor.
template <class Space>
struct LearnedScale : detail::NotIncluded<Space> {};

/// CPU version of the primary template.
template <>
struct LearnedScale<HostSpace> : detail::KernelTypes<HostSpace> {
  /// Computes y = factor.of(*s) * x, or adds it to y. Also computes x's gradient from y's gradient.
  /// @shape x, y [n]; y may be x
  /// @determinism bitwise, for any number of threads
  template <class Scalar>
  static void run(Stream stream, LearnedFactor factor, Scalar const* s, Vector<Scalar const> x, Vector<Scalar> y,
                  Write write) {
    stream.pool().for_ranges(x.size(), grain, [=, by = factor.of(*s)](Index begin, Index end) {
      with_best_instructions([=] {
        detail::maybe_in_place(x.data, y.data, [=](Scalar const* from, Scalar* to) {
          detail::write_each(begin, end, to, write, [=](Index i) { return by * from[i]; });
        });
      });
    });
  }

  /// Returns the number of partial sums that `factor_backward` needs.
  [[nodiscard]] static constexpr Index chunks(Index elements) noexcept { return (elements + grain - 1) / grain; }

  /// Computes *ds = factor.gradient(*s, the sum over i of dy[i] * x[i]), or adds it to *ds. Sums are of type Scalar
  /// within 256 elements and in double beyond.
  /// @shape dy, x [n]   @shape partial [chunks(n)], overwritten
  /// @determinism bitwise, for any number of threads
  template <class Scalar>
  static void factor_backward(Stream stream, LearnedFactor factor, Scalar const* s, Vector<Scalar const> dy,
                              Vector<Scalar const> x, Scalar* ds, Write write, double* partial) {
    constexpr Index block = 256;
    stream.pool().for_ranges(x.size(), grain, [=](Index begin, Index end) {
      partial[begin / grain] = with_best_instructions([=](auto vectors) {
        double sum = 0;
        for (Index i = begin; i < end; i += block)
          sum += static_cast<double>(detail::dot(vectors, dy.data + i, x.data + i, std::min(block, end - i)));
        return sum;
      });
    });
    double sum = 0;
    for (Index chunk = 0; chunk < chunks(x.size()); ++chunk) sum += partial[chunk];
    Scalar const here = factor.gradient(*s, sum);
    *ds = write == Write::add ? *ds + here : here;
  }

 private:
  static constexpr Index grain = 8192;
};

}}}  // namespace lockstep::kernel
