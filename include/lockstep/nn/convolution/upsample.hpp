// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <tuple>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/convolution/upsample.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/staging.hpp>
#include <lockstep/nn/convolution/per_axis.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Values of upsampled positions.
enum class UpsampleMode {
  nearest,         ///< each pixel, voxel or time step is repeated, like PyTorch's default mode "nearest"
  linear,          ///< interpolated, like PyTorch's "linear", "bilinear" and "trilinear" with align_corners=False
  linear_aligned,  ///< the same with align_corners=True: the outer pixels of input and output have equal centers
};

/// Upsampling of images, volumes and time series by integer factors, nearest-neighbour or bilinear, like PyTorch's
/// Upsample. Channels last. Has no parameters.
/// @determinism bitwise, for any number of threads
template <int Dims>
class Upsample : detail::RejectedCalls<Dims + 2> {
  static_assert(Dims >= 1 && Dims <= 3, "Lockstep: an image has one to three dimensions of space");

 public:
  /// @param factor output size per input size, along each axis
  /// @param mode repeats values, or interpolates between them
  /// @throws ConfigError for a factor below 1
  explicit Upsample(PerAxis<Dims> factor = 2, UpsampleMode mode = UpsampleMode::nearest)
      : factor_(factor), mode_(mode) {
    expect<ConfigError>(factor.min() >= 1, [&] {
      return "Upsample: factor " + to_string(factor.values) + "; every one must be at least 1";
    });
  }

  /// Names nothing: there are no parameters.
  void visit(auto&&) {}

  /// Returns the upsampled x.
  /// @shape x [rows, extent…, channels]   @shape returns [rows, extent * factor…, channels]
  /// @throws ConfigError for linear upsampling of one step of a time series in prediction token by token
  template <class Context>
  [[nodiscard]] VariableOf<Context, Dims + 2> forward(Context& context, VariableOf<Context, Dims + 2> x) const {
    using Operand = nn::Operand<Context>;
    using Kernel = kernel::Upsample<typename Context::Space>;
    if constexpr (Dims == 1 && Context::Space::host_accessible)
      if (mode_ != UpsampleMode::nearest)
        context.cache().expect_steps(x.extent(1), 2, "linear upsampling of a Variable with one step");
    kernel::UpsampleShape shape{.rows = x.extent(0), .channels = x.extent(Dims + 1), .factor = factor_.to_3d(1)};
    shape.aligned = mode_ == UpsampleMode::linear_aligned;
    auto extent = x.value.extent;
    for (std::size_t axis = 0; axis < static_cast<std::size_t>(Dims); ++axis) {
      shape.extent[PerAxis<Dims>::axis_in_3d(axis)] = extent[axis + 1];
      extent[axis + 1] *= factor_.values[axis];
    }
    auto const y = context.template variable<Dims + 2>(extent);
    Extents<1> const from{x.value.size()}, to{y.value.size()};
    Staging work(context);
    auto const run =
        mode_ == UpsampleMode::nearest ? &Kernel::template forward<Operand> : &Kernel::template linear<Operand>;
    run(context.stream(), shape, work.read(x.value).reshape(from), work.write(y.value).reshape(to));
    context.on_backward(y, std::tuple{}, [shape, x, y, from, to, mode = mode_](Context& c) {
      Staging back(c);
      auto const dx = back.gradient(x);
      if (!dx) return;
      auto const run_back = mode == UpsampleMode::nearest ? &Kernel::template backward<Operand>
                                                          : &Kernel::template linear_backward<Operand>;
      run_back(c.stream(), shape, back.read(y.gradient()).reshape(to), {dx.data, from}, dx.write);
    });
    return y;
  }
  /// Rejects a batch's tensor or column at compile time: the layer takes a Variable.
  template <class Context, detail::BatchTensor Input>
  VariableOf<Context, Dims + 2> forward(Context&, Input const& x) const {
    return detail::reject_batch_tensor<VariableOf<Context, Dims + 2>>(x);
  }
  /// Rejects calls without the context in front, or without an input, at compile time.
  using detail::RejectedCalls<Dims + 2>::forward;

 private:
  PerAxis<Dims> factor_;
  UpsampleMode mode_;
};

using Upsample1d = Upsample<1>;  ///< upsampling of time series
using Upsample2d = Upsample<2>;  ///< upsampling of images
using Upsample3d = Upsample<3>;  ///< upsampling of volumes or videos

}}}  // namespace lockstep::nn
