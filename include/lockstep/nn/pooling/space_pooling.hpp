// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <tuple>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/pooling/spatial_pooling.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/staging.hpp>
#include <lockstep/nn/convolution/per_axis.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Options of MaxPool1d, AvgPool1d and their forms for two and three axes, in elements of each axis.
template <int Dims>
struct SpacePoolingOptions {
  PerAxis<Dims> kernel = 2;       ///< of a window, at least 1
  PerAxis<Dims> stride = kernel;  ///< distance between two windows, at least 1
  PerAxis<Dims> padding = 0;      ///< on either side, at most half a kernel
  /// Adds a last window that reaches beyond the padded input, if elements remain after the others. As in PyTorch, a
  /// window that would begin after x is not added.
  bool ceil_mode = false;
  /// Whether a mean counts the zeros of the padding: it divides by the positions of the window within x and `padding`,
  /// or within x alone. Without effect on maxima.
  bool count_include_pad = true;
};

/// Value that pooling takes from a window.
enum class Pool {
  max,      ///< of each window; padding is never the maximum
  average,  ///< of each window, by default including the zeros of the padding
};

namespace detail {
/// Returns the value that `how` takes from each window, in a tensor of that extent.
template <Pool how, class Context, int Rank, int ResultRank>
[[nodiscard]] VariableOf<Context, ResultRank> pool_windows(Context& context, VariableOf<Context, Rank> x,
                                                           kernel::PoolingShape const& shape,
                                                           Extents<ResultRank> const& extent,
                                                           kernel::PoolingDivisor divisor) {
  using Operand = nn::Operand<Context>;
  using Kernel = kernel::SpatialPooling<typename Context::Space>;
  auto const y = context.template variable<ResultRank>(extent);
  Extents<1> const from{x.value.size()}, to{y.value.size()};
  Staging work(context);
  auto const input = work.read(x.value).reshape(from);
  auto const output = work.write(y.value).reshape(to);
  if constexpr (how == Pool::average) {
    Kernel::template average<Operand>(context.stream(), shape, input, output, divisor);
    context.on_backward(y, std::tuple{}, [shape, x, y, from, to, divisor](Context& c) {
      Staging back(c);
      if (auto const dx = back.gradient(x))
        Kernel::template average_backward<Operand>(c.stream(), shape, back.read(y.gradient()).reshape(to),
                                                   {dx.data, from}, dx.write, divisor);
    });
  } else {
    TensorView<std::int32_t, 1, typename Context::Space> argmax;
    if (context.recording()) argmax = context.template temporary<std::int32_t>(to);
    Kernel::template max<Operand>(context.stream(), shape, input, output, argmax);
    context.on_backward(y, std::tuple{}, [shape, x, y, argmax, from, to](Context& c) {
      Staging back(c);
      if (auto const dx = back.gradient(x))
        Kernel::template max_backward<Operand>(c.stream(), shape, back.read(y.gradient()).reshape(to), argmax,
                                               {dx.data, from}, dx.write);
    });
  }
  return y;
}
/// Returns that value over all pixels, voxels or time steps of x.
template <Pool how, class Context, int Rank>
[[nodiscard]] VariableOf<Context, 2> pool_all(Context& context, VariableOf<Context, Rank> x) {
  static_assert(Rank >= 3, "Lockstep: global pooling takes [rows, extent…, channels]");
  Index pixels = 1;
  for (int axis = 1; axis < Rank - 1; ++axis) pixels *= x.extent(axis);
  Extents<2> const extent{x.extent(0), x.extent(Rank - 1)};
  kernel::ConvolutionShape const shape{
      .rows = extent[0], .inputs = extent[1], .extent = {1, 1, pixels}, .kernel = {1, 1, pixels}};
  return pool_windows<how, Context, Rank, 2>(context, x, shape, extent, kernel::PoolingDivisor::elements);
}
/// Returns the zeros after x along an axis that `ceil_mode` needs.
[[nodiscard]] constexpr Index padding_of_last_window(kernel::ConvolutionShape const& s, std::size_t axis) noexcept {
  auto const stride = s.stride[axis], padding = s.padding[axis];
  auto const room = s.extent[axis] + 2 * padding - s.kernel[axis];
  if (room <= -stride) return padding;                                // x is too small for a window
  auto const last = (room + stride - 1) / stride * stride - padding;  // first position of the last window
  return last < s.extent[axis] ? last + s.kernel[axis] - s.extent[axis] : padding;
}
}  // namespace detail

/// Pooling over spatial windows, channel by channel; channels last.
/// @determinism bitwise, for any number of threads
template <int Dims, Pool how>
class SpacePooling : detail::RejectedCalls<Dims + 2> {
  static_assert(Dims >= 1 && Dims <= 3, "Lockstep: pooling has one to three dimensions of space");

 public:
  using Options = SpacePoolingOptions<Dims>;  ///< type of its options

  SpacePooling() = default;
  /// @throws ConfigError unless kernel and stride are at least 1 and the padding at least 0
  explicit SpacePooling(Options const& options) : options_(options) {
    expect<ConfigError>(options.kernel.min() >= 1 && options.stride.min() >= 1 && options.padding.min() >= 0, [&] {
      return "pooling: kernel " + to_string(options.kernel.values) + ", stride " + to_string(options.stride.values) +
             ", padding " + to_string(options.padding.values) +
             "; kernel and stride must be at least 1 and the padding at least 0";
    });
  }

  /// Names nothing: there are no parameters.
  void visit(auto&&) {}

  /// Returns one value for each window.
  /// @shape x [rows, extent…, channels]   @shape returns [rows, result…, channels], result = (extent + 2
  /// padding - kernel) / stride + 1, where the quotient is rounded down, or up if `ceil_mode` adds a window
  /// @throws ShapeError if the padded x is smaller than the kernel, and `ceil_mode` adds no window
  /// @throws ConfigError for a time series smaller than the kernel in prediction token by token
  template <class Context>
  [[nodiscard]] VariableOf<Context, Dims + 2> forward(Context& context, VariableOf<Context, Dims + 2> x) const {
    if constexpr (Dims == 1 && Context::Space::host_accessible)
      context.cache().expect_steps(x.extent(1), options_.kernel.values[0],
                                   "pooling of a Variable with fewer steps than its kernel");
    kernel::ConvolutionShape shape{.rows = x.extent(0),
                                   .inputs = x.extent(Dims + 1),
                                   .kernel = options_.kernel.to_3d(1),
                                   .stride = options_.stride.to_3d(1),
                                   .padding = options_.padding.to_3d(0)};
    auto extent = x.value.extent;
    for (std::size_t axis = 0; axis < static_cast<std::size_t>(Dims); ++axis) {
      auto const axis_3d = PerAxis<Dims>::axis_in_3d(axis);
      shape.extent[axis_3d] = extent[axis + 1];
      if (options_.ceil_mode) shape.padding_after[axis_3d] = detail::padding_of_last_window(shape, axis_3d);
      extent[axis + 1] = shape.result(axis_3d);
    }
    auto const divisor = options_.count_include_pad ? kernel::PoolingDivisor::padded : kernel::PoolingDivisor::elements;
    return detail::pool_windows<how, Context, Dims + 2, Dims + 2>(context, x, shape, extent, divisor);
  }
  /// Rejects calls without the context in front, or without an input, at compile time.
  using detail::RejectedCalls<Dims + 2>::forward;

 private:
  Options options_;
};

using MaxPool1d = SpacePooling<1, Pool::max>;      ///< largest values of time series
using MaxPool2d = SpacePooling<2, Pool::max>;      ///< largest values of images
using MaxPool3d = SpacePooling<3, Pool::max>;      ///< largest values of volumes or videos
using AvgPool1d = SpacePooling<1, Pool::average>;  ///< means of time series
using AvgPool2d = SpacePooling<2, Pool::average>;  ///< means of images
using AvgPool3d = SpacePooling<3, Pool::average>;  ///< means of volumes or videos

/// Pooling with a given number of windows along each spatial axis, for inputs of any size, channel by channel; channels
/// last. Window i of n along an axis has the positions from i * extent / n, rounded down, to (i + 1) * extent / n,
/// rounded up: widths may differ by one, and windows may have common positions. Means count the positions of each
/// window.
/// @determinism bitwise, for any number of threads
/// @source torch.nn.AdaptiveAvgPool2d, AdaptiveMaxPool2d and their forms for one and three axes
template <int Dims, Pool how>
class AdaptivePooling : detail::RejectedCalls<Dims + 2> {
  static_assert(Dims >= 1 && Dims <= 3, "Lockstep: pooling has one to three dimensions of space");

 public:
  /// @param windows number along each axis, at least 1: the extents of the result
  /// @throws ConfigError for a number below 1
  explicit AdaptivePooling(PerAxis<Dims> const& windows) : windows_(windows) {
    expect<ConfigError>(windows.min() >= 1, [&] {
      return "adaptive pooling: " + to_string(windows.values) + " windows; there must be at least 1 along each axis";
    });
  }

  /// Names nothing: there are no parameters.
  void visit(auto&&) {}

  /// Returns one value for each window.
  /// @shape x [rows, extent…, channels]   @shape returns [rows, windows…, channels]
  /// @throws ShapeError if x has rows and no positions
  /// @throws ConfigError in prediction token by token, for Dims 1
  template <class Context>
  [[nodiscard]] VariableOf<Context, Dims + 2> forward(Context& context, VariableOf<Context, Dims + 2> x) const {
    if constexpr (Dims == 1 && Context::Space::host_accessible)
      context.cache().expect_whole_sequences("adaptive pooling of a Variable");
    kernel::PoolingShape shape;
    shape.rows = x.extent(0);
    shape.inputs = x.extent(Dims + 1);
    auto extent = x.value.extent;
    for (std::size_t axis = 0; axis < static_cast<std::size_t>(Dims); ++axis) {
      auto const axis_3d = PerAxis<Dims>::axis_in_3d(axis);
      shape.extent[axis_3d] = extent[axis + 1];
      shape.set_adaptive(axis_3d, windows_.values[axis]);
      extent[axis + 1] = windows_.values[axis];
    }
    return detail::pool_windows<how, Context, Dims + 2, Dims + 2>(context, x, shape, extent,
                                                                  kernel::PoolingDivisor::elements);
  }
  /// Rejects calls without the context in front, or without an input, at compile time.
  using detail::RejectedCalls<Dims + 2>::forward;

 private:
  PerAxis<Dims> windows_;
};

using AdaptiveMaxPool1d = AdaptivePooling<1, Pool::max>;      ///< largest values of time series
using AdaptiveMaxPool2d = AdaptivePooling<2, Pool::max>;      ///< largest values of images
using AdaptiveMaxPool3d = AdaptivePooling<3, Pool::max>;      ///< largest values of volumes or videos
using AdaptiveAvgPool1d = AdaptivePooling<1, Pool::average>;  ///< means of time series
using AdaptiveAvgPool2d = AdaptivePooling<2, Pool::average>;  ///< means of images
using AdaptiveAvgPool3d = AdaptivePooling<3, Pool::average>;  ///< means of volumes or videos

/// Returns the mean over all pixels, voxels or time steps, channel by channel.
/// @shape x [rows, extent…, channels]   @shape returns [rows, channels]
/// @determinism bitwise, for any number of threads
template <class Context, int Rank>
[[nodiscard]] VariableOf<Context, 2> global_average_pool(Context& context, VariableOf<Context, Rank> x) {
  return detail::pool_all<Pool::average>(context, x);
}

/// Returns the largest value over all pixels, voxels or time steps, channel by channel, as
/// torch.nn.AdaptiveMaxPool2d(1) in PyTorch. The gradient goes to the first of several equal values. If a channel has a
/// NaN, its maximum is NaN.
/// @shape x [rows, extent…, channels]   @shape returns [rows, channels]
/// @determinism bitwise, for any number of threads
/// @throws ShapeError if x has rows and no pixels
template <class Context, int Rank>
[[nodiscard]] VariableOf<Context, 2> global_max_pool(Context& context, VariableOf<Context, Rank> x) {
  return detail::pool_all<Pool::max>(context, x);
}

}}}  // namespace lockstep::nn
