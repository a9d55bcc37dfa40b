// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>

#include <lockstep/kernel/sequence/clear_padding.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/autograd/staging.hpp>
#include <lockstep/nn/convolution/detail/convolution_base.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

namespace detail {
/// Returns the tokens of x with zeros in padding, or x itself if it has no padding.
/// @shape returns [x.layout.slots, x.width()]
template <class Context>
[[nodiscard]] VariableOf<Context, 2> clear_padding(Context& context, SequenceOf<Context> const& x) {
  using Kernel = kernel::ClearPadding<typename Context::Space>;
  using Operand = nn::Operand<Context>;
  if (x.layout.is_ragged() || x.layout.lengths.empty()) return x.tokens;
  auto const y = context.template variable<2>(x.tokens.value.extent);
  {
    Staging work(context);
    Kernel::template run<Operand>(context.stream(), x.layout, work.read(x.tokens.value), work.write(y.value),
                                  Write::overwrite);
  }
  context.on_backward(y, std::tuple{}, [x, y](Context& c) {
    Staging back(c);
    if (auto const dx = back.gradient(x.tokens))
      Kernel::template run<Operand>(c.stream(), x.layout, back.read(y.gradient()), {dx.data, y.value.extent}, dx.write);
  });
  return y;
}

}  // namespace detail

/// Options of Conv1d, Conv2d and Conv3d, in elements of each axis.
template <int Dims>
struct ConvolutionOptions {
  PerAxis<Dims> kernel = 3;    ///< at least 1
  PerAxis<Dims> stride = 1;    ///< distance between two windows, at least 1
  PerAxis<Dims> padding = 0;   ///< zeros on either side
  Bias bias = Bias::learned;   ///< choose none before a BatchNorm, which cancels it
  PerAxis<Dims> dilation = 1;  ///< distance between adjacent elements of the kernel
  Index groups = 1;            ///< number of groups of adjacent channels; an output reads the inputs of its group
  bool causal = false;  ///< one dimension only: pads dilation * (kernel - 1) zeros before and none after, so that an
                        ///< output never reads later inputs
};

/// Convolution over `Dims` spatial dimensions. Activations are channels last: [rows, height, width, channels] for an
/// image. The weight has PyTorch's order and initializer: U(-1/sqrt(n), 1/sqrt(n)) for n = inputs / groups * elements
/// of the kernel.
/// @shape weight [outputs, inputs / groups, kernel…]   @shape bias [outputs], or absent
/// @determinism bitwise, for any number of threads; with oneDNN, for a fixed library and processor type
template <int Dims>
class Convolution : public detail::ConvolutionBase<Dims> {
  using Base = detail::ConvolutionBase<Dims>;
  using Base::bias_, Base::weight_, Base::groups_, Base::flat, Base::dilated_kernel;

 public:
  using Base::forward;                       // overloads that reject other arguments
  using Options = ConvolutionOptions<Dims>;  ///< type of its options

  /// @throws ConfigError unless channels, kernel, stride, dilation and groups are at least 1, the padding at least 0,
  /// and groups divides inputs and outputs
  /// @throws ConfigError for a causal convolution with several dimensions or a padding
  Convolution(Index inputs, Index outputs, Options const& options = {})
      : Base("Convolution", inputs, outputs, outputs, inputs / checked_groups(inputs, outputs, options), options) {
    if (!options.causal) return;
    for (std::size_t axis = 0; axis < static_cast<std::size_t>(Dims); ++axis)
      this->padding_.values[axis] = dilated_kernel(axis) - 1;
    this->padding_after_ = 0;
  }

  /// Returns the number of input channels.
  [[nodiscard]] Index inputs() const noexcept { return groups_ * weight_.shape[1]; }
  /// Returns the number of output channels.
  [[nodiscard]] Index outputs() const noexcept { return weight_.shape[0]; }

  /// Returns the convolution of x.
  /// @shape x [rows, extent…, inputs]   @shape returns [rows, result…, outputs], result = (extent + padding on both
  /// sides - dilation (kernel - 1) - 1) / stride + 1
  /// @throws ShapeError if x has other channels, or is smaller than the dilated kernel
  /// @throws ConfigError for a time series smaller than the dilated kernel in prediction token by token, which needs a
  /// Sequence
  template <class Context>
  [[nodiscard]] VariableOf<Context, Dims + 2> forward(Context& context, VariableOf<Context, Dims + 2> x) const {
    using Operand = nn::Operand<Context>;
    using Kernel = kernel::Convolution<typename Context::Space>;
    this->check_channels("Convolution", x.value.extent, inputs());
    PerAxis<Dims> extent(1);
    std::copy_n(x.value.extent.begin() + 1, Dims, extent.values.begin());
    if constexpr (Dims == 1 && Context::Space::host_accessible)
      context.cache().expect_steps(extent.values[0], dilated_kernel(0),
                                   "a convolution of a Variable with fewer steps than its kernel");
    auto const shape = this->shape_of(x.extent(0), extent, inputs(), outputs());
    auto y = context.template variable<Dims + 2>(output_extents(shape));
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
  /// Convolution over the tokens of sequences that are padded to one length. Padding reads as zeros, so a sequence's
  /// result does not depend on the batch's length. A sequence's result has as many tokens as the window has positions
  /// in it; a sequence without tokens has none. A causal convolution with a stride of 1 supports prediction token by
  /// token.
  /// @shape x.tokens [rows * length, inputs]   @shape returns [rows * result, outputs], result of the length as above
  /// @throws ShapeError if x has other channels, is ragged, or has a length smaller than the dilated kernel
  template <class Context>
  requires(Dims == 1) [[nodiscard]] SequenceOf<Context> forward(Context& context, SequenceOf<Context> const& x) const {
    using Kernel = kernel::ClearPadding<typename Context::Space>;
    if constexpr (Context::Space::host_accessible) {
      bool const can_decode =
          this->stride_.values[0] == 1 && padding_before() == dilated_kernel(0) - 1 && padding_after() == 0;
      if (!can_decode) context.cache().expect_whole_sequences("a convolution that is not causal, or has a stride");
      if (context.cache().continues()) return forward_next_tokens(context, x);
      if (context.cache().is_decoding()) save_last_tokens(context, x);
    }
    expect<ShapeError>(!x.layout.is_ragged(), [&] {
      return weight_.layer("Convolution") +
             ": the sequences are concatenated, but the layer takes sequences padded to one length; use "
             "data::PadCollate for batches";
    });
    auto const tokens = detail::clear_padding(context, x);
    bool const any = x.layout.length > 0;  // otherwise sequences have no positions, like a batch without rows
    auto const y = forward(context, tokens.reshape(Extents<3>{any ? x.layout.rows : 0, x.layout.length, x.width()}));
    auto layout = x.layout;
    layout.length = any ? y.extent(1) : 0;
    layout.slots = layout.rows * layout.length;
    if (!x.layout.lengths.empty()) {
      auto const lengths = context.template temporary<std::int32_t>(Extents<1>{layout.rows});
      Kernel::window_counts(context.stream(), x.layout.lengths, dilated_kernel(0), this->stride_.values[0],
                            padding_before() + padding_after(), layout.length, lengths);
      layout.lengths = {lengths.data, lengths.extent};
    }
    return {y.as_rows(), layout};
  }

 private:
  /// Returns the groups after checking them and the other options.
  [[nodiscard]] static Index checked_groups(Index inputs, Index outputs, Options const& o) {
    expect<ConfigError>(!o.causal || (Dims == 1 && o.padding == PerAxis<Dims>(0)), [&] {
      return std::string("Convolution: ") +
             (Dims == 1
                  ? "causal, with padding " + to_string(o.padding.values) +
                        "; a causal convolution has dilation * (kernel - 1) of padding before and none after, so the "
                        "option must be 0"
                  : "causal in " + std::to_string(Dims) +
                        " dimensions of space; only a convolution over one dimension can be causal");
    });
    return Base::groups_of("Convolution", inputs, outputs, o);
  }
  [[nodiscard]] Index padding_before() const noexcept { return this->padding_.values[0]; }
  [[nodiscard]] Index padding_after() const noexcept { return this->padding_after_.values[0]; }

  /// Keeps as many last tokens of each sequence as the next token reads. Zeros precede the first token.
  template <class Context>
  void save_last_tokens(Context& context, SequenceOf<Context> const& x) const {
    auto const last_tokens = context.cache().recurrent_state(x.layout, padding_before() * inputs());
    for (Index row = 0; row < x.layout.rows; ++row)
      save_last_tokens(x.tokens.value.data + x.layout.start(row) * inputs(), x.layout.tokens(row),
                       last_tokens.data + row * padding_before() * inputs());
  }
  /// Updates the kept tokens of one sequence with the `tokens` tokens at x.
  template <class Scalar, class Real>
  void save_last_tokens(Scalar const* x, Index tokens, Real* last_tokens) const {
    auto const width = inputs(), stay = std::max<Index>(0, padding_before() - tokens), added = padding_before() - stay;
    std::copy_n(last_tokens + (padding_before() - stay) * width, stay * width, last_tokens);
    std::transform(x + (tokens - added) * width, x + tokens * width, last_tokens + stay * width,
                   [](Scalar value) { return static_cast<Real>(value); });
  }
  /// Computes one more token of each sequence from the kept tokens and the new one.
  template <class Context>
  [[nodiscard]] SequenceOf<Context> forward_next_tokens(Context& context, SequenceOf<Context> const& x) const {
    using Scalar = typename Context::Scalar;
    using Kernel = kernel::Convolution<typename Context::Space>;
    auto const rows = x.layout.rows, past = padding_before() * inputs(), all = past + inputs();
    auto const last_tokens = context.cache().recurrent_state(x.layout, past);
    auto const window = context.template temporary<Scalar>(Extents<2>{rows, all});
    for (Index row = 0; row < rows; ++row) {
      auto const* const token = x.tokens.value.data + row * inputs();
      std::transform(last_tokens.data + row * past, last_tokens.data + (row + 1) * past, window.data + row * all,
                     [](auto value) { return static_cast<Scalar>(value); });
      std::copy_n(token, inputs(), window.data + row * all + past);
      save_last_tokens(token, 1, last_tokens.data + row * past);
    }
    auto shape = this->shape_of(rows, dilated_kernel(0), inputs(), outputs());
    shape.padding = shape.padding_after = {0, 0, 0};
    auto const y = context.template variable<2>({rows, outputs()});
    Staging work(context);
    Kernel::template forward<Operand<Context>>(context.stream(), shape, flat(work.read(window)), this->weight(work),
                                               this->bias(work), flat(work.write(y.value)), this->plans(context),
                                               this->scratch(context));
    return x.with(y);
  }

  static Extents<Dims + 2> output_extents(kernel::ConvolutionShape const& shape) {
    Extents<Dims + 2> extent{shape.rows};
    for (std::size_t axis = 0; axis < static_cast<std::size_t>(Dims); ++axis)
      extent[axis + 1] = shape.result(PerAxis<Dims>::axis_in_3d(axis));
    extent.back() = shape.outputs;
    return extent;
  }
};

using Conv1d = Convolution<1>;  ///< convolution of time series
using Conv2d = Convolution<2>;  ///< convolution of images
using Conv3d = Convolution<3>;  ///< convolution of volumes or videos

}}}  // namespace lockstep::nn
