// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <limits>

#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/convolution_shape.hpp>
#include <lockstep/kernel/detail/column_lanes.hpp>
#include <lockstep/kernel/detail/lanes.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Depthwise convolution of one sample on the calling thread, without patches. Vectors hold adjacent channels, which
/// are the last axis here. A few adjacent output positions share each tap's weight.
/// @shape x [extent…, channels]   @shape weight [taps, channels]   @shape bias [channels], or null
/// @shape y [result…, channels]
/// @determinism bitwise: sums are in the order of taps, and those of the weight's gradient in the order of positions
/// @source direct from the definition
class DepthwiseConvolution {
 public:
  explicit DepthwiseConvolution(ConvolutionShape const& shape) noexcept : s_(shape) {}

  /// Computes y = the convolution of x, or adds it to y without the bias.
  template <class Scalar>
  void forward(Scalar const* x, Scalar const* weight, Scalar const* bias, Scalar* y, Write write) const {
    for_vectors<Scalar, TargetSide::y>(
        write, [=]<class Lane, Index positions>(Index target, TapList const& taps,
                                                Index c) __attribute__((always_inline)) {
          sum<Lane, positions>(taps, x + c, weight + c, bias ? bias + c : nullptr, y + target * taps.channels + c);
        });
  }
  /// Computes dx = the gradient of x from the gradient of y, or adds it to dx.
  template <class Scalar>
  void data(Scalar const* dy, Scalar const* weight, Scalar* dx, Write write) const {
    for_vectors<Scalar, TargetSide::x>(
        write, [=]<class Lane, Index positions>(Index target, TapList const& taps, Index c)
                   __attribute__((always_inline)) {
                     sum<Lane, positions>(taps, dy + c, weight + c, static_cast<Scalar const*>(nullptr),
                                          dx + target * taps.channels + c);
                   });
  }
  /// Computes dweight += the gradient of the weight.
  template <class Scalar>
  void weight(Scalar const* x, Scalar const* dy, Scalar* dweight) const {
    for_vectors<Scalar, TargetSide::y>(
        Write::add, [=]<class Lane, Index positions>(Index target, TapList const& taps, Index c)
                        __attribute__((always_inline)) {
                          add_products<Lane, positions>(taps, x + c, dy + target * taps.channels + c, dweight + c);
                        });
  }

 private:
  /// Output positions that are computed together.
  static constexpr Index together = 4;
  /// Side that the sums are written to.
  enum class TargetSide { y, x };

  /// Sources that the first of some adjacent targets reads, with their taps. The next target's sources are
  /// `source_step` further. Many taps come in several portions, of which all but the first add to the target.
  struct TapList {
    static constexpr Index capacity = 32;
    Index source[capacity], tap[capacity];
    Index count = 0, channels = 0, source_step = 1, target_step = 1;
    bool adds = false;

    /// Returns the largest source, which is in the row that was read last.
    [[nodiscard, gnu::always_inline]] Index newest() const noexcept {
      return count == 0 ? 0 : std::max(source[0], source[count - 1]);
    }
  };

  /// Returns the source that a target reads at a tap along an axis. There is none if it is outside of [0, sources).
  template <TargetSide side>
  [[nodiscard, gnu::always_inline]] static Index source_of(ConvolutionShape const& s, std::size_t axis, Index target,
                                                           Index tap) noexcept {
    Index const reach = tap * s.dilation[axis], padding = s.padding[axis], stride = s.stride[axis];
    if constexpr (side == TargetSide::y) return target * stride - padding + reach;
    Index const steps = target + padding - reach;
    if (stride == 1) return steps;
    return steps % stride == 0 ? steps / stride : std::numeric_limits<Index>::min() / 2;
  }

  /// Calls f.template operator()<V, positions>(target, taps, channel) for all targets and channels. V is a vector
  /// of channels from `channel` on, and `positions` is the number of targets from `target` on.
  template <class Scalar, TargetSide side, class Function>
  void for_vectors(Write write, Function const& f) const {
    with_best_instructions([f, write, s = s_](auto vectors) {
      for_tap_lists<side>(
          s,
          write == Write::add, [=]<Index positions>(Index target, TapList const& taps) __attribute__((always_inline)) {
            for_column_lanes<Scalar>(
                vectors, taps.channels, [&]<class Lane>(Index c) __attribute__((always_inline)) {
                  f.template operator()<Lane, positions>(target, taps, c);
                });
          });
    });
  }
  /// Calls f.template operator()<positions>(target, taps). Each target is among the `positions` targets of exactly
  /// one call, or of several consecutive calls if its taps come in portions.
  template <TargetSide side, class Function>
  [[gnu::always_inline]] static void for_tap_lists(ConvolutionShape const& s, bool adds, Function const& f) {
    auto const targets = side == TargetSide::y ? s.result() : s.extent;
    auto const sources = side == TargetSide::y ? s.extent : s.result();
    // Targets read adjacent sources at equal taps if they are one stride apart in x.
    TapList taps;
    taps.channels = s.inputs;
    taps.source_step = side == TargetSide::y ? s.stride[2] : 1;
    taps.target_step = side == TargetSide::y ? 1 : s.stride[2];
    auto const portion = [&](Index target, bool several) __attribute__((always_inline)) {
      if (several)
        f.template operator()<together>(target, taps);
      else
        f.template operator()<1>(target, taps);
      taps.count = 0;
      taps.adds = true;
    };
    for (Index d = 0; d < targets[0]; ++d)
      for (Index h = 0; h < targets[1]; ++h)
        for (Index phase = 0; phase < taps.target_step && phase < targets[2]; ++phase)
          for (Index w = phase; w < targets[2];) {
            bool const several = have_equal_taps<side>(s, w, taps, targets[2], sources[2]);
            Index const target = (d * targets[1] + h) * targets[2] + w;
            taps.count = 0;
            taps.adds = adds;
            for (Index kd = 0, tap = 0; kd < s.kernel[0]; ++kd)
              for (Index kh = 0; kh < s.kernel[1]; ++kh) {
                Index const from_d = source_of<side>(s, 0, d, kd), from_h = source_of<side>(s, 1, h, kh);
                bool const inside = from_d >= 0 && from_d < sources[0] && from_h >= 0 && from_h < sources[1];
                for (Index kw = 0; kw < s.kernel[2]; ++kw, ++tap) {
                  Index const from_w = source_of<side>(s, 2, w, kw);
                  if (!inside || from_w < 0 || from_w >= sources[2]) continue;
                  if (taps.count == TapList::capacity) portion(target, several);
                  taps.source[taps.count] = (from_d * sources[1] + from_h) * sources[2] + from_w;
                  taps.tap[taps.count++] = tap;
                }
              }
            if (taps.count > 0 || !taps.adds) portion(target, several);
            w += (several ? together : 1) * taps.target_step;
          }
  }
  /// Whether all targets that are computed together, from `w` on, read sources at equal taps along the width.
  template <TargetSide side>
  [[nodiscard, gnu::always_inline]] static bool have_equal_taps(ConvolutionShape const& s, Index w, TapList const& taps,
                                                                Index targets, Index sources) noexcept {
    if (w + (together - 1) * taps.target_step >= targets) return false;
    for (Index tap = 0; tap < s.kernel[2]; ++tap) {
      Index const first = source_of<side>(s, 2, w, tap), last = first + (together - 1) * taps.source_step;
      if (!(last < 0 || first >= sources || (first >= 0 && last < sources))) return false;
    }
    return true;
  }
  /// Prefetches what the positions after the next ones read. The processor cannot predict accesses to so many rows with
  /// only a few channels each.
  template <class Lane, class Scalar>
  [[gnu::always_inline]] static void prefetch_next(Scalar const* from, Index step) noexcept {
    if constexpr (sizeof(Lane) > sizeof(Scalar)) {
#pragma GCC unroll 8
      for (Index i = 0; i < together; ++i) __builtin_prefetch(from + (2 * together + i) * step);
    }
  }
  /// Computes to = start + the sum over sources of source times weight, for each of `positions` targets. A null start
  /// is zero.
  template <class Lane, Index positions, class Scalar>
  [[gnu::always_inline]] static void sum(TapList const& taps, Scalar const* from, Scalar const* weight,
                                         Scalar const* start, Scalar* to) noexcept {
    Lane sums[static_cast<std::size_t>(positions)], factor, next;
    Index const from_step = taps.source_step * taps.channels, to_step = taps.target_step * taps.channels;
    prefetch_next<Lane>(from + taps.newest() * taps.channels, from_step);
#pragma GCC unroll 8
    for (Index i = 0; i < positions; ++i) {
      if (taps.adds)
        load(sums[i], to + i * to_step);
      else if (start)
        load(sums[i], start);
      else
        clear(sums[i]);
    }
    for (Index m = 0; m < taps.count; ++m) {
      load(factor, weight + taps.tap[m] * taps.channels);
#pragma GCC unroll 8
      for (Index i = 0; i < positions; ++i) {
        load(next, from + taps.source[m] * taps.channels + i * from_step);
        sums[i] += next * factor;
      }
    }
#pragma GCC unroll 8
    for (Index i = 0; i < positions; ++i) store(to + i * to_step, sums[i]);
  }
  /// Computes to += source times dy for each source, at its tap, over `positions` positions of y.
  template <class Lane, Index positions, class Scalar>
  [[gnu::always_inline]] static void add_products(TapList const& taps, Scalar const* from, Scalar const* dy,
                                                  Scalar* to) noexcept {
    Lane slopes[static_cast<std::size_t>(positions)], total, next;
    Index const from_step = taps.source_step * taps.channels;
    prefetch_next<Lane>(from + taps.newest() * taps.channels, from_step);
    prefetch_next<Lane>(dy, taps.channels);
#pragma GCC unroll 8
    for (Index i = 0; i < positions; ++i) load(slopes[i], dy + i * taps.channels);
    for (Index m = 0; m < taps.count; ++m) {
      load(total, to + taps.tap[m] * taps.channels);
#pragma GCC unroll 8
      for (Index i = 0; i < positions; ++i) {
        load(next, from + taps.source[m] * taps.channels + i * from_step);
        total += slopes[i] * next;
      }
      store(to + taps.tap[m] * taps.channels, total);
    }
  }

  ConvolutionShape s_;
};

}}}  // namespace lockstep::kernel::detail
