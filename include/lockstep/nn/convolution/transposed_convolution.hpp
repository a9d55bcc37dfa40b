// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <string>
#include <tuple>

#include <lockstep/kernel/elementwise/binary_operation.hpp>
#include <lockstep/kernel/elementwise/channel_bias.hpp>
#include <lockstep/nn/convolution/detail/convolution_base.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Options of ConvTranspose1d, ConvTranspose2d and ConvTranspose3d, in elements of each axis.
template <int Dims>
struct TransposedConvolutionOptions {
  PerAxis<Dims> kernel = 2;          ///< at least 1
  PerAxis<Dims> stride = 2;          ///< factor by which the result is larger, at least 1
  PerAxis<Dims> padding = 0;         ///< pixels cut from the result on either side
  PerAxis<Dims> output_padding = 0;  ///< pixels added at the end of the result; less than the stride
  Bias bias = Bias::learned;         ///< choose none before a BatchNorm, which cancels it
  PerAxis<Dims> dilation = 1;        ///< distance between adjacent elements of the kernel
  Index groups = 1;                  ///< number of groups of adjacent channels; an output reads the inputs of its group
};

/// Transposed convolution, PyTorch's ConvTranspose: the input gradient of a convolution with the same options. Each
/// pixel of x contributes a kernel-sized block, and overlapping blocks are added. The default kernel and stride of 2
/// double an image's sides. Channels last; the weight has PyTorch's order and initializer: U(-1/sqrt(n), 1/sqrt(n)) for
/// n = outputs / groups * elements of the kernel.
/// @shape weight [inputs, outputs / groups, kernel…]   @shape bias [outputs], or absent
/// @determinism bitwise, for any number of threads; with oneDNN, for a fixed library and processor type
/// @source Zeiler and others: Deconvolutional networks (2010)
template <int Dims>
class TransposedConvolution : public detail::ConvolutionBase<Dims> {
  using Base = detail::ConvolutionBase<Dims>;
  using Base::bias_, Base::weight_, Base::flat;

 public:
  using Base::forward;                                 // overloads that reject other arguments
  using Options = TransposedConvolutionOptions<Dims>;  ///< type of its options

  /// @throws ConfigError unless channels, kernel, stride, dilation and groups are at least 1, the padding at least 0,
  /// the output padding from 0 to below the stride, and groups divides inputs and outputs
  TransposedConvolution(Index inputs, Index outputs, Options const& options = {})
      : Base("TransposedConvolution", inputs, outputs, inputs,
             outputs / Base::groups_of("TransposedConvolution", inputs, outputs, options), options),
        output_padding_(options.output_padding) {
    for (std::size_t axis = 0; axis < static_cast<std::size_t>(Dims); ++axis)
      expect<ConfigError>(
          output_padding_.values[axis] >= 0 && output_padding_.values[axis] < options.stride.values[axis], [&] {
            return "TransposedConvolution: output padding " + to_string(output_padding_.values) + " and stride " +
                   to_string(options.stride.values) + "; the output padding must be from 0 to below the stride";
          });
  }

  /// Returns the number of input channels.
  [[nodiscard]] Index inputs() const noexcept { return weight_.shape[0]; }
  /// Returns the number of output channels.
  [[nodiscard]] Index outputs() const noexcept { return this->groups_ * weight_.shape[1]; }

  /// Returns the transposed convolution of x.
  /// @shape x [rows, extent…, inputs]   @shape returns [rows, result…, outputs], result = (extent - 1) stride +
  /// dilation (kernel - 1) + 1 + output padding - 2 padding
  /// @throws ShapeError if x has other channels, or the result would be empty
  template <class Context>
  [[nodiscard]] VariableOf<Context, Dims + 2> forward(Context& context, VariableOf<Context, Dims + 2> x) const {
    using Operand = nn::Operand<Context>;
    using Kernel = kernel::Convolution<typename Context::Space>;
    using ChannelBias = kernel::ChannelBias<typename Context::Space>;
    this->check_channels("TransposedConvolution", x.value.extent, inputs());
    auto const extent = output_size(x.value.extent);
    // The shape of the convolution of y whose input gradient this is.
    auto const shape = this->shape_of(x.extent(0), extent, outputs(), inputs());
    auto const y = context.template variable<Dims + 2>(output_extents(x.extent(0), extent));
    Extents<2> const pixels{shape.rows * shape.input_positions(), outputs()};
    {
      Staging work(context);
      auto const to = work.write(y.value);
      Kernel::template backward_data<Operand>(context.stream(), shape, flat(work.read(x.value)), this->weight(work),
                                              flat(to), Write::overwrite, this->plans(context), this->scratch(context));
      if (this->has_bias_)
        ChannelBias::template forward<Operand>(context.stream(), this->bias(work), to.reshape(pixels));
    }
    context.on_backward(y, std::tie(weight_, bias_), [this, shape, x, y, pixels](Context& c) {
      Staging back(c);
      auto const dy = back.read(y.gradient());
      if (auto const dx = back.gradient(x)) convolve(c, back, shape, flat(dy), {dx.data, {x.value.size()}}, dx.write);
      auto const dweight = c.gradient(weight_);
      Kernel::template backward_weight<Operand>(c.stream(), shape, flat(back.read(x.value)), flat(dy),
                                                {dweight.data, {shape.weight_size()}}, dweight.write, {},
                                                Write::overwrite, this->plans(c), this->scratch(c));
      if (auto const dbias = this->bias_gradient(c))
        ChannelBias::template backward<Operand>(
            c.stream(), dy.reshape(pixels), {dbias.data, {outputs()}}, dbias.write,
            back.temporary(Extents<1>{ChannelBias::partial_elements(pixels[0], pixels[1])}).data);
    });
    return y;
  }

 private:
  /// Computes dx = convolution of dy, or dx += convolution of dy.
  template <class Context, class Element, class Space = typename Context::Space>
  void convolve(Context& context, Staging<Context>& back, kernel::ConvolutionShape const& shape,
                TensorView<Element const, 1, Space> dy, TensorView<Element, 1, Space> dx, Write write) const {
    auto const convolve_into = [&](TensorView<Element, 1, Space> target) {
      kernel::Convolution<Space>::template forward<Element>(context.stream(), shape, dy, this->weight(back), {}, target,
                                                            this->plans(context), this->scratch(context));
    };
    if (write == Write::overwrite) return convolve_into(dx);
    auto const added = back.template temporary<Element>(dx.extent);
    convolve_into(added);
    kernel::BinaryOperation<Space>::template backward<kernel::FirstOperand, Element>(context.stream(), added, {}, dx,
                                                                                     write);
  }

  [[nodiscard]] PerAxis<Dims> output_size(Extents<Dims + 2> x) const {
    PerAxis<Dims> extent(1);
    for (std::size_t axis = 0; axis < static_cast<std::size_t>(Dims); ++axis) {
      extent.values[axis] = (x[axis + 1] - 1) * this->stride_.values[axis] - 2 * this->padding_.values[axis] +
                            this->dilated_kernel(axis) + output_padding_.values[axis];
      if (x[0] == 0) extent.values[axis] = std::max<Index>(0, extent.values[axis]);  // without rows, axes may be empty
      expect<ShapeError>(x[0] == 0 || (x[axis + 1] >= 1 && extent.values[axis] >= 1), [&] {
        return weight_.layer("TransposedConvolution") + ": the input is " + to_string(x) + "; a kernel " +
               to_string(this->kernel_.values) + " with padding " + to_string(this->padding_.values) +
               " leaves an empty output; give a non-empty input and a padding below half the kernel's extent";
      });
    }
    return extent;
  }
  [[nodiscard]] Extents<Dims + 2> output_extents(Index rows, PerAxis<Dims> const& extent) const {
    Extents<Dims + 2> all{rows};
    for (std::size_t axis = 0; axis < static_cast<std::size_t>(Dims); ++axis) all[axis + 1] = extent.values[axis];
    all.back() = outputs();
    return all;
  }

  PerAxis<Dims> output_padding_;
};

using ConvTranspose1d = TransposedConvolution<1>;  ///< transposed convolution of time series
using ConvTranspose2d = TransposedConvolution<2>;  ///< transposed convolution of images
using ConvTranspose3d = TransposedConvolution<3>;  ///< transposed convolution of volumes or videos

}}}  // namespace lockstep::nn
