// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <string>
#include <tuple>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/convolution.hpp>
#include <lockstep/nn/context.hpp>
#include <lockstep/nn/detail/of_batch.hpp>
#include <lockstep/nn/linear.hpp>
#include <lockstep/nn/per_axis.hpp>
#include <lockstep/nn/staging.hpp>

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
class Convolution {
  static_assert(Dims >= 1 && Dims <= 3, "Lockstep: a convolution has one to three dimensions of space");

 public:
  using Options = ConvolutionOptions<Dims>;

  /// @throws ConfigError unless channels, kernel and stride are at least 1 and the padding at least 0
  Convolution(Index inputs, Index outputs, Options const& options = {})
      : options_(options),
        weight_{weight_shape(inputs, outputs, options), start(inputs, options)},
        bias_{{outputs}, start(inputs, options)} {}

  void visit(auto&& each) {
    each("weight", weight_);
    if (options_.bias == Bias::learned) each("bias", bias_);
  }

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
    auto const shape = shape_of(x.value.extent);
    auto y = context.template variable<Dims + 2>(result_of(shape));
    Staging work(context);
    Kernel::template forward<Operand>(context.stream(), shape, flat(work.read(x.value)), flat(weight(work)), bias(work),
                                      flat(work.write(y.value)), plans(context), scratch(context));
    context.on_backward(y, std::tie(weight_, bias_), [this, shape, x, y](Context& c) {
      Staging back(c);
      auto const dy = flat(back.read(y.gradient()));
      if (auto const dx = back.gradient(x))
        Kernel::template backward_data<Operand>(c.stream(), shape, dy, flat(weight(back)), {dx.data, {x.value.size()}},
                                                dx.write, plans(c), scratch(c));
      auto const dweight = c.gradient(weight_);
      auto const dbias = options_.bias == Bias::learned ? c.gradient(bias_) : GradientTarget<typename Context::Real>{};
      Kernel::template backward_weight<Operand>(c.stream(), shape, dy, flat(back.read(x.value)),
                                                {dweight.data, {shape.weight_size()}}, dweight.write,
                                                {dbias.data, {outputs()}}, dbias.write, plans(c), scratch(c));
    });
    return y;
  }
  /// Says that it takes a Variable.
  template <class Context, detail::OfBatch X>
  typename Context::template Variable<Dims + 2> forward(Context&, X const& x) const {
    return detail::refuse_batch<typename Context::template Variable<Dims + 2>>(x);
  }
  /// Says which.
  template <class Context, int Rank>
  requires(Rank != Dims + 2)  //
      typename Context::template Variable<Dims + 2> forward(
          Context&, nn::Variable<typename Context::Scalar, Rank, typename Context::Space> const&) const {
    static_assert(Rank == Dims + 2,
                  "Lockstep: a convolution takes rows, as many axes of space as it has itself, and channels: Conv1d "
                  "[rows, length, channels], Conv2d [rows, height, width, channels]; x.reshape(Extents<3>{...}) has "
                  "the same numbers");
    return {};
  }

 private:
  static std::vector<Index> weight_shape(Index inputs, Index outputs, Options const& o) {
    auto const least = [](PerAxis<Dims> const& sizes) {
      return *std::min_element(sizes.values.begin(), sizes.values.end());
    };
    expect<ConfigError>(
        inputs >= 1 && outputs >= 1 && least(o.kernel) >= 1 && least(o.stride) >= 1 && least(o.padding) >= 0, [&] {
          return "Convolution: " + std::to_string(inputs) + " inputs, " + std::to_string(outputs) +
                 " outputs, kernel " + to_string(o.kernel.values) + ", stride " + to_string(o.stride.values) +
                 ", padding " + to_string(o.padding.values) +
                 "; channels, kernel and stride must be at least 1 and the padding at least 0";
        });
    std::vector<Index> shape{outputs, inputs};
    shape.insert(shape.end(), o.kernel.values.begin(), o.kernel.values.end());
    return shape;
  }
  static Initializer start(Index inputs, Options const& o) {
    return Initializer::fan_in(inputs * elements(o.kernel.values));
  }

  [[nodiscard]] kernel::ConvolutionShape shape_of(Extents<Dims + 2> x) const {
    expect<ShapeError>(x.back() == inputs(), [&] {
      return weight_.layer("Convolution") + ": the input is " + to_string(x) + " and the layer has " +
             std::to_string(inputs()) + " input channels; the last extent must be " + std::to_string(inputs());
    });
    PerAxis<Dims> extent(1);
    std::copy_n(x.begin() + 1, Dims, extent.values.begin());
    return {.rows = x[0],
            .inputs = inputs(),
            .outputs = outputs(),
            .extent = extent.in_space(1),
            .kernel = options_.kernel.in_space(1),
            .stride = options_.stride.in_space(1),
            .padding = options_.padding.in_space(0)};
  }
  static Extents<Dims + 2> result_of(kernel::ConvolutionShape const& shape) {
    Extents<Dims + 2> extent{shape.rows};
    constexpr auto dims = static_cast<std::size_t>(Dims);
    for (std::size_t axis = 0; axis < dims; ++axis) extent[axis + 1] = shape.result(3 - dims + axis);
    extent.back() = shape.outputs;
    return extent;
  }

  template <class Context>
  [[nodiscard]] auto weight(Staging<Context>& work) const {
    return work.template factor<Dims + 2>(weight_);
  }
  template <class Context>
  [[nodiscard]] TensorView<Operand<Context> const, 1, typename Context::Space> bias(Staging<Context>& work) const {
    if (options_.bias == Bias::none) return {};
    return work.template factor<1>(bias_);
  }
  template <class View>
  [[nodiscard]] static auto flat(View const& x) noexcept {
    return x.reshape(Extents<1>{x.size()});
  }
  template <class Context>
  [[nodiscard]] auto& plans(Context& context) const {
    using Kernel = kernel::Convolution<typename Context::Space>;
    return context.template kept<typename Kernel::template Plans<Operand<Context>>>(this);
  }
  /// Of the context, not of the layer: it is empty between calls.
  template <class Context>
  [[nodiscard]] static auto& scratch(Context& context) {
    return context.template kept<typename kernel::Convolution<typename Context::Space>::Scratch>(nullptr);
  }

  Options options_;
  Parameter weight_, bias_;
};

using Conv1d = Convolution<1>;
using Conv2d = Convolution<2>;
using Conv3d = Convolution<3>;

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
