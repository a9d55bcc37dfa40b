// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <string>
#include <tuple>
#include <type_traits>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/dropout_mask.hpp>
#include <lockstep/kernel/elementwise/elementwise.hpp>
#include <lockstep/kernel/linear/activation_slope.hpp>
#include <lockstep/kernel/linear/linear.hpp>
#include <lockstep/kernel/row_dropout.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/autograd/staging.hpp>
#include <lockstep/nn/detail/apply_to_rows.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>
#include <lockstep/nn/linear/activation_option.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

namespace detail {

/// Whether X is a Variable of images, videos or time series: [rows, extent…, channels].
template <class Input>
inline constexpr bool has_spatial_axes = false;
template <class Scalar, int Rank, class Space>
inline constexpr bool has_spatial_axes<Variable<Scalar, Rank, Space>> = Rank > 2;

}  // namespace detail

/// Whether a layer adds a learned bias.
enum class Bias {
  learned,  ///< one number per output
  none,     ///< no bias
};

/// y = x weight^T + bias for every row, or every slot of a sequence. Initialized like PyTorch's: U(-1/sqrt(inputs),
/// 1/sqrt(inputs)).
/// @shape weight [outputs, inputs]   @shape bias [outputs], or absent
/// @determinism bitwise, for any number of threads
class Linear : detail::RejectedCalls<2> {
 public:
  /// @throws ConfigError unless both are at least 1
  Linear(Index inputs, Index outputs, Bias bias = Bias::learned);
  /// Rejects true and false at compile time.
  template <std::same_as<bool> Flag>
  Linear(Index inputs, Index outputs, Flag) : Linear(inputs, outputs) {
    static_assert(!std::is_same_v<Flag, Flag>,
                  "Lockstep: Linear takes nn::Bias::none in place of false, and nn::Bias::learned in place of true");
  }

  /// Names "weight", and "bias" if there is one.
  void visit(auto&& each) {
    each("weight", weight_);
    if (has_bias_) each("bias", bias_);
  }

  /// Returns the width of x.
  [[nodiscard]] Index inputs() const noexcept { return weight_.shape[1]; }
  /// Returns the width of the result.
  [[nodiscard]] Index outputs() const noexcept { return weight_.shape[0]; }
  /// Returns the weight, [outputs, inputs].
  [[nodiscard]] Parameter const& weight() const noexcept { return weight_; }
  /// Returns the bias, [outputs]; without effect if has_bias() is false.
  [[nodiscard]] Parameter const& bias() const noexcept { return bias_; }
  /// Returns whether the layer adds a bias.
  [[nodiscard]] bool has_bias() const noexcept { return has_bias_; }
  /// Returns weight and bias in the form that this layer's kernels take. The bias is null if the layer has none.
  template <class Context>
  [[nodiscard]] TensorView<Operand<Context> const, 2, typename Context::Space> weight(Staging<Context>& work) const;
  /// Returns the bias, or null.
  template <class Context>
  [[nodiscard]] TensorView<Operand<Context> const, 1, typename Context::Space> bias(Staging<Context>& work) const;

  /// Returns x weight^T + bias.
  /// @shape x [rows, inputs]   @shape returns [rows, outputs]
  /// @throws ShapeError if x has another width
  template <class Context>
  [[nodiscard]] VariableOf<Context, 2> forward(Context& context, VariableOf<Context, 2> x) const;
  /// Applies the layer to each slot.
  template <class Context>
  [[nodiscard]] SequenceOf<Context> forward(Context& context, SequenceOf<Context> const& x) const;

  /// Applies the layer, optionally with an activation, to each pixel, voxel or time step, like a convolution with a
  /// kernel of 1.
  /// @shape x [rows, …, inputs]   @shape returns [rows, …, outputs]
  template <class Context, int Rank>
  requires(Rank > 2)
      [[nodiscard]] nn::VariableOf<Context, Rank> forward(Context& context, nn::VariableOf<Context, Rank> x,
                                                          ActivationOption activation = Activation::none) const {
    return detail::apply_to_rows(x, [&](auto const& rows) { return forward(context, rows, activation); });
  }

  /// Rejects calls without the context in front, or without an input, at compile time.
  using detail::RejectedCalls<2>::forward;

  /// Rejects any other argument at compile time and explains what the layer takes.
  template <class Context, class Input>
  requires(!detail::has_spatial_axes<Input> && !std::is_convertible_v<Input const&, nn::VariableOf<Context, 2>> &&
           !std::is_convertible_v<Input const&, SequenceOf<Context>>) VariableOf<Context, 2> forward(Context&,
                                                                                                     Input const&)
  const {
    constexpr bool whole_batch = detail::WholeBatch<Input>;
    static_assert(!whole_batch,
                  "Lockstep: Linear got the whole batch. A model's forward takes a batch and returns its loss; if "
                  "this is a block's forward, declare it with `nn::VariableOf<Context, 2> x`; if not, give Linear "
                  "context.input(batch[&Sample::member].values)");
    static_assert(
        whole_batch,
        "Lockstep: Linear takes a Variable [rows, channels] or a Sequence. For a batch's array column pass "
        "context.input(column.values), for a column of numbers context.input(column.values.reshape(Extents<2>{"
        "batch.rows(), 1})), for a column of sequences nn::sequence_of");
    return {};
  }

  /// Returns activation(x weight^T + bias). Applies the activation while the matrix product is in cache: one pass less
  /// than nn::gelu and others after the layer.
  /// @shape x [rows, inputs]   @shape returns [rows, outputs]
  /// @throws ShapeError if x has another width
  template <class Context>
  [[nodiscard]] VariableOf<Context, 2> forward(Context& context, VariableOf<Context, 2> x,
                                               ActivationOption activation) const;
  /// Applies layer and activation to each slot.
  template <class Context>
  [[nodiscard]] SequenceOf<Context> forward(Context& context, SequenceOf<Context> const& x,
                                            ActivationOption activation) const;

  /// An activated output, and the slope by which its gradient is multiplied in backward.
  template <class Context>
  struct Activated {
    VariableOf<Context, 2> y;  ///< [rows, outputs]
    /// of the activation at each element
    kernel::ActivationSlope<typename Context::Scalar, typename Context::Space> slope;
  };
  /// Returns dropout(activation(x weight^T + bias)), for an activation other than none. For layers that fuse this layer
  /// with others and register its backward.
  template <class Context>
  [[nodiscard]] Activated<Context> forward(Context& context, VariableOf<Context, 2> x, Activation activation,
                                           kernel::RowDropout<typename Context::Space> dropout) const;

  /// Registers the backward of a layer that made `output` from this layer's parameters.
  template <class Context, class Function>
  void on_backward(Context& context, VariableOf<Context, 2> output, Function f) const {
    context.on_backward(output, std::tie(weight_, bias_), f);
  }

  /// Returns a new variable for the sums x weight^T + bias. The layer that reads it may compute the bias's gradient, so
  /// call `backward` with the variable.
  template <class Context>
  [[nodiscard]] VariableOf<Context, 2> output(Context& context, Index rows) const;

  /// Runs the backward pass from the gradient of y, for layers that fuse this layer with others. Multiplies x's
  /// gradient by `slope`, if given.
  template <class Context>
  void backward(Context& c, VariableOf<Context, 2> x,
                TensorView<typename Context::Scalar const, 2, typename Context::Space> dy,
                kernel::ActivationSlope<typename Context::Scalar, typename Context::Space> slope = {}) const;
  /// Runs the same for y = `output`. Skips the bias if the layer that read y has computed its gradient.
  template <class Context>
  void backward(Context& c, VariableOf<Context, 2> x, VariableOf<Context, 2> y,
                kernel::ActivationSlope<typename Context::Scalar, typename Context::Space> slope = {}) const;

  /// Runs the backward pass for x = gelu(before) without reading x: recomputes x from `before`, whose value the
  /// gradient of `before` overwrites.
  template <class Context>
  void backward_through_gelu(Context& c, VariableOf<Context, 2> before,
                             TensorView<typename Context::Scalar const, 2, typename Context::Space> dy) const;

  /// Checks the extents of an input.   @throws ShapeError unless x has as many columns as this layer has inputs
  void check(Extents<2> x) const {
    expect<ShapeError>(x[1] == inputs(), [&] {
      return weight_.layer("Linear") + ": the input is " + to_string(x) + " and weight is " +
             to_string(Extents<2>{outputs(), inputs()}) + "; the input needs " + std::to_string(inputs()) + " columns";
    });
  }

 private:
  template <class Context>
  void backward(Context& c, VariableOf<Context, 2> x,
                TensorView<typename Context::Scalar const, 2, typename Context::Space> dy,
                kernel::ActivationSlope<typename Context::Scalar, typename Context::Space> slope, bool with_bias) const;

  Parameter weight_, bias_;
  bool has_bias_;
};

}}}  // namespace lockstep::nn

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/nn/linear/linear.ipp>
#endif
