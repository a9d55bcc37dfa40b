// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <tuple>
#include <type_traits>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/activation.hpp>
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

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

using kernel::Activation;

namespace detail {

/// Whether X is a Variable of images, videos or time series: [rows, extent…, channels].
template <class X>
inline constexpr bool has_spatial_axes = false;
template <class Scalar, int Rank, class Space>
inline constexpr bool has_spatial_axes<Variable<Scalar, Rank, Space>> = Rank > 2;

}  // namespace detail

/// Whether a layer adds a learned bias.
enum class Bias {
  learned,  ///< one number per output
  none,     ///< no bias
};

/// y = x weight^T + bias for every row, or every slot of a sequence. Initialised like PyTorch's: U(-1/sqrt(inputs),
/// 1/sqrt(inputs)).
/// @shape weight [outputs, inputs]   @shape bias [outputs], or absent
/// @determinism bitwise, for any number of threads
class Linear {
 public:
  /// @throws ConfigError unless both are at least 1
  Linear(Index inputs, Index outputs, Bias bias = Bias::learned)
      : weight_{{outputs, inputs}, Initializer::fan_in(inputs)},
        bias_{{outputs}, Initializer::fan_in(inputs)},
        has_bias_(bias == Bias::learned) {
    expect<ConfigError>(inputs >= 1 && outputs >= 1, [&] {
      return "Linear: " + std::to_string(inputs) + " inputs and " + std::to_string(outputs) +
             " outputs; both must be at least 1";
    });
  }

  void visit(auto&& each) {
    each("weight", weight_);
    if (has_bias_) each("bias", bias_);
  }

  [[nodiscard]] Index inputs() const noexcept { return weight_.shape[1]; }
  [[nodiscard]] Index outputs() const noexcept { return weight_.shape[0]; }
  [[nodiscard]] Parameter const& weight() const noexcept { return weight_; }
  [[nodiscard]] Parameter const& bias() const noexcept { return bias_; }
  [[nodiscard]] bool has_bias() const noexcept { return has_bias_; }
  /// Returns weight and bias in the form that this layer's kernels take. The bias is null if the layer has none.
  template <class Context>
  [[nodiscard]] TensorView<Operand<Context> const, 2, typename Context::Space> weight(Staging<Context>& work) const {
    return work.template factor<2>(weight_);
  }
  template <class Context>
  [[nodiscard]] TensorView<Operand<Context> const, 1, typename Context::Space> bias(Staging<Context>& work) const {
    if (!has_bias_) return {};
    return work.template factor<1>(bias_);
  }

  /// Returns x weight^T + bias.
  /// @shape x [rows, inputs]   @shape returns [rows, outputs]
  /// @throws ShapeError if x has another width
  template <class Context>
  [[nodiscard]] VariableOf<Context, 2> forward(Context& context, VariableOf<Context, 2> x) const {
    check(x.value.extent);
    auto y = context.template variable<2>({x.extent(0), outputs()});
    Staging work(context);
    kernel::Linear<typename Context::Space>::template forward<Operand<Context>>(
        context.stream(), work.read(x.value), weight(work), bias(work), work.write(y.value));
    on_backward(context, y, [this, x, y](Context& c) { backward(c, x, y.gradient()); });
    return y;
  }
  template <class Context>
  [[nodiscard]] SequenceOf<Context> forward(Context& context, SequenceOf<Context> const& x) const {
    return x.with(forward(context, x.tokens));
  }

  /// Applies the layer, optionally with an activation, to each pixel, voxel or time step, like a convolution with a
  /// kernel of 1.
  /// @shape x [rows, …, inputs]   @shape returns [rows, …, outputs]
  template <class Context, int Rank>
  requires(Rank > 2)
      [[nodiscard]] nn::VariableOf<Context, Rank> forward(Context& context, nn::VariableOf<Context, Rank> x,
                                                          Activation activation = Activation::none) const {
    return detail::apply_to_rows(x, [&](auto const& rows) { return forward(context, rows, activation); });
  }

  /// Rejects any other argument at compile time and explains what the layer takes.
  template <class Context, class X>
  requires(!detail::has_spatial_axes<X> && !std::is_convertible_v<X const&, nn::VariableOf<Context, 2>> &&
           !std::is_convertible_v<X const&, SequenceOf<Context>>) VariableOf<Context, 2> forward(Context&, X const&)
  const {
    constexpr bool whole_batch = detail::WholeBatch<X>;
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
  /// than nn::gelu or nn::relu after the layer.
  /// @shape x [rows, inputs]   @shape returns [rows, outputs]
  /// @throws ShapeError if x has another width
  template <class Context>
  [[nodiscard]] VariableOf<Context, 2> forward(Context& context, VariableOf<Context, 2> x,
                                               Activation activation) const {
    if (activation == Activation::none) return forward(context, x);
    auto const activated = forward(context, x, activation, {});
    on_backward(context, activated.y, [this, x, activated](Context& c) {
      // No other closure reads y's gradient or the kept slopes: the gradient before the activation overwrites either.
      Extents<1> const flat{activated.y.value.size()};
      typename Context::template View<2> dh{activated.y.slot->data, activated.y.value.extent};
      {
        Staging work(c);
        using Kernel = kernel::Elementwise<typename Context::Space>;
        auto const in_place = work.update(dh).reshape(flat);
        if (auto const slope = activated.slope.factors; slope.data) {
          Kernel::template backward<kernel::Gelu, Operand<Context>>(
              c.stream(), in_place, work.read(slope).reshape(flat), in_place, Write::overwrite);
        } else {
          Kernel::template backward<kernel::Relu, Operand<Context>>(
              c.stream(), in_place, work.read(activated.y.value).reshape(flat), in_place, Write::overwrite);
        }
      }
      backward(c, x, dh);
    });
    return activated.y;
  }
  template <class Context>
  [[nodiscard]] SequenceOf<Context> forward(Context& context, SequenceOf<Context> const& x,
                                            Activation activation) const {
    return x.with(forward(context, x.tokens, activation));
  }

  /// An activated output, and the slope by which its gradient is multiplied in backward.
  template <class Context>
  struct Activated {
    VariableOf<Context, 2> y;
    kernel::ActivationSlope<typename Context::Scalar, typename Context::Space> slope;
  };
  /// Returns dropout(activation(x weight^T + bias)), for gelu or relu. For layers that fuse this layer with others and
  /// register its backward.
  template <class Context>
  [[nodiscard]] Activated<Context> forward(Context& context, VariableOf<Context, 2> x, Activation activation,
                                           kernel::RowDropout<typename Context::Space> dropout) const {
    using Real = typename Context::Real;
    check(x.value.extent);
    Activated<Context> activated{context.template variable<2>({x.extent(0), outputs()}), {}};
    typename Context::template View<2> factors;
    if (context.recording() && activation == Activation::gelu)
      factors = context.template temporary<typename Context::Scalar>(activated.y.value.extent);
    Staging work(context);
    kernel::Linear<typename Context::Space>::template forward<Operand<Context>>(
        context.stream(), work.read(x.value), weight(work), bias(work), activation, dropout,
        work.write(activated.y.value), work.write(factors));
    activated.slope = {.factors = factors,
                       .positive = activation == Activation::relu ? static_cast<Real>(dropout.mask.scale()) : Real{0}};
    return activated;
  }

  /// Registers the backward of a layer that made `output` from this layer's parameters.
  template <class Context, class F>
  void on_backward(Context& context, VariableOf<Context, 2> output, F f) const {
    context.on_backward(output, std::tie(weight_, bias_), f);
  }

  /// Runs the backward pass from the gradient of y, for layers that fuse this layer with others. Multiplies x's
  /// gradient by `slope`, if given.
  template <class Context>
  void backward(Context& c, VariableOf<Context, 2> x,
                TensorView<typename Context::Scalar const, 2, typename Context::Space> dy,
                kernel::ActivationSlope<typename Context::Scalar, typename Context::Space> slope = {}) const {
    using Real = typename Context::Real;
    using Kernel = kernel::Linear<typename Context::Space>;
    Staging work(c);
    auto const dx = work.gradient(x);
    auto const dweight = c.gradient(weight_);
    auto const dbias = has_bias_ ? c.gradient(bias_) : GradientTarget<Real>{nullptr, Write::overwrite};
    auto const partial =
        work.temporary(Extents<1>{Kernel::partial_elements(c.stream(), x.extent(0), inputs(), outputs())});
    Kernel::template backward<Operand<Context>>(
        c.stream(), work.read(dy), work.read(c.saved_value(x)), weight(work),
        {.factors = work.read(slope.factors), .positive = slope.positive}, {dx.data, x.value.extent}, dx.write,
        {dweight.data, {outputs(), inputs()}}, dweight.write, {dbias.data, {outputs()}}, dbias.write, partial.data);
  }

  /// Runs the backward pass for x = gelu(before) without reading x: recomputes x from `before`, whose value the
  /// gradient of `before` overwrites.
  template <class Context>
  void backward_through_gelu(Context& c, VariableOf<Context, 2> before,
                             TensorView<typename Context::Scalar const, 2, typename Context::Space> dy) const {
    using Real = typename Context::Real;
    using Kernel = kernel::Linear<typename Context::Space>;
    static_assert(std::is_same_v<Real, typename Context::Scalar>, "Lockstep: a rounded value does not reproduce x");
    Staging work(c);
    auto const rows = before.extent(0);
    auto const h = c.gradient_in_place_of_value(before);
    auto const dweight = c.gradient(weight_);
    auto const dbias = has_bias_ ? c.gradient(bias_) : GradientTarget<Real>{nullptr, Write::overwrite};
    auto const elements = [](Index count) { return Extents<1>{count}; };
    auto const partial = work.temporary(elements(Kernel::partial_elements(c.stream(), rows, inputs(), outputs())));
    auto const recomputed = work.temporary(elements(Kernel::recomputed_elements(c.stream(), rows, inputs())));
    Kernel::template backward_through_gelu<Real>(c.stream(), dy, {h.data, before.value.extent},
                                                 c.template value<2>(weight_), {dweight.data, {outputs(), inputs()}},
                                                 dweight.write, {dbias.data, {outputs()}}, dbias.write, partial.data,
                                                 recomputed.data);
  }

  /// @throws ShapeError unless x has as many columns as this layer has inputs
  void check(Extents<2> x) const {
    expect<ShapeError>(x[1] == inputs(), [&] {
      return weight_.layer("Linear") + ": the input is " + to_string(x) + " and weight is " +
             to_string(Extents<2>{outputs(), inputs()}) + "; the input needs " + std::to_string(inputs()) + " columns";
    });
  }

 private:
  Parameter weight_, bias_;
  bool has_bias_;
};

}}}  // namespace lockstep::nn
