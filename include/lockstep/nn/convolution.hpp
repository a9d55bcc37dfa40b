// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <tuple>

#include <lockstep/kernel/clear_padding.hpp>
#include <lockstep/nn/detail/convolution_base.hpp>
#include <lockstep/nn/detail/without_padding.hpp>
#include <lockstep/nn/sequence.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

template <int Dims>
struct ConvolutionOptions {
  PerAxis<Dims> kernel = 3;
  PerAxis<Dims> stride = 1;
  PerAxis<Dims> padding = 0;  ///< zeros on either side
  Bias bias = Bias::learned;  ///< none where a BatchNorm follows, which would take it away again
};

/// A convolution over `Dims` dimensions of space. Activations lie channels last: [rows, height, width, channels] for a
/// picture. The weight has PyTorch's order and start: U(-1/sqrt(n), 1/sqrt(n)) for n = inputs * elements of the kernel.
/// @shape weight [outputs, inputs, kernel…]   @shape bias [outputs], or there is none
/// @determinism bitwise, for any number of threads; with oneDNN for one library on one processor
template <int Dims>
class Convolution : public detail::ConvolutionBase<Dims> {
  using Base = detail::ConvolutionBase<Dims>;
  using Base::bias_, Base::weight_, Base::flat;

 public:
  using Base::forward;  // says what it takes, of anything else
  using Options = ConvolutionOptions<Dims>;

  /// @throws ConfigError unless channels, kernel and stride are at least 1 and the padding at least 0
  Convolution(Index inputs, Index outputs, Options const& options = {})
      : Base("Convolution", inputs, outputs, outputs, inputs, options) {}

  [[nodiscard]] Index inputs() const noexcept { return weight_.shape[1]; }
  [[nodiscard]] Index outputs() const noexcept { return weight_.shape[0]; }

  /// @shape x [rows, extent…, inputs]   @shape returns [rows, result…, outputs], result = (extent + 2 padding - kernel)
  /// / stride + 1
  /// @throws ShapeError when x has other channels, or is smaller than the kernel
  template <class Context>
  [[nodiscard]] typename Context::template Variable<Dims + 2> forward(
      Context& context, typename Context::template Variable<Dims + 2> x) const {
    using Operand = nn::Operand<Context>;
    using Kernel = kernel::Convolution<typename Context::Space>;
    this->check_channels("Convolution", x.value.extent, inputs());
    PerAxis<Dims> extent(1);
    std::copy_n(x.value.extent.begin() + 1, Dims, extent.values.begin());
    auto const shape = this->shape_of(x.extent(0), extent, inputs(), outputs());
    auto y = context.template variable<Dims + 2>(result_of(shape));
    Staging work(context);
    Kernel::template forward<Operand>(context.stream(), shape, flat(work.read(x.value)), this->weight(work),
                                      this->bias(work), flat(work.write(y.value)), this->plans(context),
                                      this->scratch(context));
    context.on_backward(y, std::tie(weight_, bias_), [this, shape, x, y](Context& c) {
      Staging back(c);
      auto const dy = flat(back.read(y.gradient()));
      if (auto const dx = back.gradient(x))
        Kernel::template backward_data<Operand>(c.stream(), shape, dy, this->weight(back), {dx.data, {x.value.size()}},
                                                dx.write, this->plans(c), this->scratch(c));
      auto const dweight = c.gradient(weight_);
      auto const dbias = this->bias_gradient(c);
      Kernel::template backward_weight<Operand>(
          c.stream(), shape, dy, flat(back.read(x.value)), {dweight.data, {shape.weight_size()}}, dweight.write,
          {dbias.data, {outputs()}}, dbias.write, this->plans(c), this->scratch(c));
    });
    return y;
  }
  /// Of sequences, padded to one length: a series whose tokens see each other and nothing of the padding, so that a
  /// sequence's result is what it is alone. Each then has as many tokens as the window has places in it.
  /// @shape x.tokens [rows * length, inputs]   @shape returns [rows * result, outputs], result as above of the length
  /// @throws ShapeError when x has other channels, is ragged, or has a length smaller than the kernel
  template <class Context>
  requires(Dims == 1) [[nodiscard]] Sequence<typename Context::Scalar, typename Context::Space> forward(
      Context& context, Sequence<typename Context::Scalar, typename Context::Space> const& x) const {
    using Kernel = kernel::ClearPadding<typename Context::Space>;
    if constexpr (Context::Space::host_accessible) context.expect_whole_sequences("Convolution");
    expect<ShapeError>(!x.layout.is_ragged(), [&] {
      return weight_.layer("Convolution") +
             ": the sequences lie end to end, and it takes them padded to one length: let data::PadCollate make "
             "batches";
    });
    auto const tokens = detail::without_padding(context, x);
    auto const y = forward(context, tokens.reshape(Extents<3>{x.layout.rows, x.layout.length, x.width()}));
    auto layout = x.layout;
    layout.length = y.extent(1), layout.slots = layout.rows * layout.length;
    if (!x.layout.lengths.empty()) {
      auto const lengths = context.template temporary<std::int32_t>(Extents<1>{layout.rows});
      Kernel::windows(context.stream(), x.layout.lengths, this->kernel_.values[0], this->stride_.values[0],
                      this->padding_.values[0], layout.length, lengths);
      layout.lengths = {lengths.data, lengths.extent};
    }
    return {y.as_rows(), layout};
  }

 private:
  static Extents<Dims + 2> result_of(kernel::ConvolutionShape const& shape) {
    Extents<Dims + 2> extent{shape.rows};
    for (std::size_t axis = 0; axis < static_cast<std::size_t>(Dims); ++axis)
      extent[axis + 1] = shape.result(PerAxis<Dims>::axis_in_space(axis));
    extent.back() = shape.outputs;
    return extent;
  }
};

using Conv1d = Convolution<1>;
using Conv2d = Convolution<2>;
using Conv3d = Convolution<3>;

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
