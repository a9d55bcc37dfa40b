// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <tuple>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/convolution/pad.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/staging.hpp>
#include <lockstep/nn/convolution/per_axis.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

using kernel::PadMode;

/// Options of Pad1d, Pad2d and Pad3d, in elements of each axis.
template <int Dims>
struct PadOptions {
  PerAxis<Dims> padding = 1;         ///< before x, at least 0; 0 for an axis without padding
  PerAxis<Dims> after = padding;     ///< after x, at least 0
  PadMode mode = PadMode::circular;  ///< values of the padding
};

/// Periodic, reflected, replicated or zero padding, like PyTorch's CircularPad2d, ReflectionPad2d, ReplicationPad2d and
/// ZeroPad2d. Put it before a convolution without padding: with the default options it fits a kernel of 3. For as many
/// zeros before as after, use the padding of the convolution, which makes no copy of x. Channels last. Has no
/// parameters.
/// @determinism bitwise, for any number of threads
template <int Dims>
class Pad {
  static_assert(Dims >= 1 && Dims <= 3, "Lockstep: an image has one to three dimensions of space");

 public:
  using Options = PadOptions<Dims>;  ///< type of its options

  Pad() = default;
  /// @throws ConfigError for a negative padding
  explicit Pad(Options const& options) : options_(options) {
    expect<ConfigError>(options.padding.min() >= 0 && options.after.min() >= 0, [&] {
      return "Pad: padding " + to_string(options.padding.values) + " before and " + to_string(options.after.values) +
             " after; every one must be at least 0";
    });
  }

  /// Names nothing: there are no parameters.
  void visit(auto&&) {}

  /// Returns x with padding.
  /// @shape x [rows, extent…, channels]   @shape returns [rows, padding + extent + after…, channels]
  /// @throws ShapeError if circular padding is larger than its axis, or reflected padding not smaller than its axis
  /// @throws ConfigError for a time series of fewer steps than its padding and one in prediction token by token
  template <class Context>
  [[nodiscard]] VariableOf<Context, Dims + 2> forward(Context& context, VariableOf<Context, Dims + 2> x) const {
    using Operand = nn::Operand<Context>;
    using Kernel = kernel::Pad<typename Context::Space>;
    if constexpr (Dims == 1 && Context::Space::host_accessible)
      context.cache().expect_steps(x.extent(1), options_.padding.values[0] + options_.after.values[0] + 1,
                                   "padding of a Variable with few steps");
    kernel::PadShape shape{.rows = x.extent(0),
                           .channels = x.extent(Dims + 1),
                           .before = options_.padding.to_3d(0),
                           .after = options_.after.to_3d(0),
                           .mode = options_.mode};
    auto extent = x.value.extent;
    for (std::size_t axis = 0; axis < static_cast<std::size_t>(Dims); ++axis) {
      shape.extent[PerAxis<Dims>::axis_in_3d(axis)] = extent[axis + 1];
      extent[axis + 1] = shape.result(PerAxis<Dims>::axis_in_3d(axis));
    }
    auto const y = context.template variable<Dims + 2>(extent);
    Extents<1> const from{x.value.size()}, to{y.value.size()};
    Staging work(context);
    Kernel::template forward<Operand>(context.stream(), shape, work.read(x.value).reshape(from),
                                      work.write(y.value).reshape(to));
    context.on_backward(y, std::tuple{}, [shape, x, y, from, to](Context& c) {
      Staging back(c);
      if (auto const dx = back.gradient(x))
        Kernel::template backward<Operand>(c.stream(), shape, back.read(y.gradient()).reshape(to), {dx.data, from},
                                           dx.write);
    });
    return y;
  }
  /// Rejects a batch's tensor or column at compile time: the layer takes a Variable.
  template <class Context, detail::BatchTensor Input>
  VariableOf<Context, Dims + 2> forward(Context&, Input const& x) const {
    return detail::reject_batch_tensor<VariableOf<Context, Dims + 2>>(x);
  }
  /// Rejects calls without the context in front at compile time.
  auto forward(detail::NoContext auto const& first, auto const&...) const { return detail::reject_call(first); }

 private:
  Options options_;
};

using Pad1d = Pad<1>;  ///< padding of time series
using Pad2d = Pad<2>;  ///< padding of images
using Pad3d = Pad<3>;  ///< padding of volumes or videos

}}}  // namespace lockstep::nn
