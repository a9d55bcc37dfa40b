// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <numeric>
#include <string>
#include <vector>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/convolution/convolution.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/staging.hpp>
#include <lockstep/nn/convolution/per_axis.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>
#include <lockstep/nn/linear/linear.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn::detail {

/// Common base of Convolution and TransposedConvolution: their parameters, and their kernels' state between calls.
template <int Dims>
class ConvolutionBase : RejectedCalls<Dims + 2> {
  static_assert(Dims >= 1 && Dims <= 3, "Lockstep: a convolution has one to three dimensions of space");

 public:
  void visit(auto&& each) {
    each("weight", weight_);
    if (has_bias_) each("bias", bias_);
  }

  /// Rejects a batch's tensor or column at compile time: the layer takes a Variable.
  template <class Context, BatchTensor Input>
  VariableOf<Context, Dims + 2> forward(Context&, Input const& x) const {
    return reject_batch_tensor<VariableOf<Context, Dims + 2>>(x);
  }
  /// Rejects a Variable of the wrong rank at compile time.
  template <class Context, int Rank>
  requires(Rank != Dims + 2)  //
      VariableOf<Context, Dims + 2> forward(Context&, nn::VariableOf<Context, Rank> const&)
  const {
    static_assert(Rank == Dims + 2,
                  "Lockstep: a convolution takes rows, as many axes of space as it has itself, and channels: Conv1d "
                  "[rows, length, channels], Conv2d [rows, height, width, channels]; x.reshape(Extents<3>{...}) keeps "
                  "the numbers");
    return {};
  }
  /// Rejects calls without the context in front, or without an input, at compile time.
  using RejectedCalls<Dims + 2>::forward;

 protected:
  /// Makes a weight [first, second, kernel…]. Weight and bias start uniform within 1 / sqrt(second * elements of the
  /// kernel), like PyTorch's.
  template <class Options>
  ConvolutionBase(char const* name, Index inputs, Index outputs, Index first, Index second, Options const& o)
      : kernel_(o.kernel),
        stride_(o.stride),
        padding_(o.padding),
        padding_after_(o.padding),
        dilation_(o.dilation),
        groups_(o.groups),
        has_bias_(o.bias == Bias::learned) {
    expect<ConfigError>(
        inputs >= 1 && outputs >= 1 && o.kernel.min() >= 1 && o.stride.min() >= 1 && o.padding.min() >= 0, [&] {
          return std::string(name) + ": " + std::to_string(inputs) + " inputs, " + std::to_string(outputs) +
                 " outputs, kernel " + to_string(o.kernel.values) + ", stride " + to_string(o.stride.values) +
                 ", padding " + to_string(o.padding.values) +
                 "; channels, kernel and stride must be at least 1 and the padding at least 0";
        });
    auto const start = Initializer::fan_in(second * elements(kernel_.values));
    std::vector<Index> shape{first, second};
    shape.insert(shape.end(), kernel_.values.begin(), kernel_.values.end());
    weight_ = {shape, start};
    bias_ = {{outputs}, start};
  }

  /// Returns the groups.
  /// @throws ConfigError unless dilation and groups are at least 1, and groups divides inputs and outputs
  template <class Options>
  [[nodiscard]] static Index groups_of(char const* name, Index inputs, Index outputs, Options const& o) {
    expect<ConfigError>(o.dilation.min() >= 1 && o.groups >= 1, [&] {
      return std::string(name) + ": dilation " + to_string(o.dilation.values) + ", " + std::to_string(o.groups) +
             " groups; both must be at least 1";
    });
    expect<ConfigError>(inputs % o.groups == 0 && outputs % o.groups == 0, [&] {
      auto const both = std::gcd(inputs, outputs);
      auto fewer = o.groups, more = o.groups;
      while (both % fewer != 0) --fewer;
      while (more < both && both % more != 0) ++more;
      return std::string(name) + ": " + std::to_string(inputs) + " inputs and " + std::to_string(outputs) +
             " outputs in " + std::to_string(o.groups) + " groups, which must divide both; " +
             (more <= both ? "the nearest that do are " + std::to_string(fewer) + " and " + std::to_string(more)
                           : "at most " + std::to_string(fewer) + " do");
    });
    return o.groups;
  }
  /// Returns the distance from the kernel's first element to its last, plus 1.
  [[nodiscard]] Index dilated_kernel(std::size_t axis) const noexcept {
    return dilation_.values[axis] * (kernel_.values[axis] - 1) + 1;
  }
  /// @throws ShapeError unless the last extent of x is `inputs`
  void check_channels(char const* name, Extents<Dims + 2> x, Index inputs) const {
    expect<ShapeError>(x.back() == inputs, [&] {
      return weight_.layer(name) + ": the input is " + to_string(x) + " and the layer has " + std::to_string(inputs) +
             " input channels; the last extent must be " + std::to_string(inputs);
    });
  }
  /// Returns the shape of a convolution from `from` to `to` channels over `extent`.
  [[nodiscard]] kernel::ConvolutionShape shape_of(Index rows, PerAxis<Dims> extent, Index from, Index to) const {
    return {.rows = rows,
            .inputs = from,
            .outputs = to,
            .extent = extent.to_3d(1),
            .kernel = kernel_.to_3d(1),
            .stride = stride_.to_3d(1),
            .padding = padding_.to_3d(0),
            .padding_after = padding_after_.to_3d(0),
            .dilation = dilation_.to_3d(1),
            .groups = groups_};
  }

  template <class View>
  [[nodiscard]] static auto flat(View const& x) noexcept {
    return x.reshape(Extents<1>{x.size()});
  }
  template <class Context>
  [[nodiscard]] auto weight(Staging<Context>& work) const {
    return flat(work.template factor<Dims + 2>(weight_));
  }
  template <class Context>
  [[nodiscard]] TensorView<Operand<Context> const, 1, typename Context::Space> bias(Staging<Context>& work) const {
    if (!has_bias_) return {};
    return work.template factor<1>(bias_);
  }
  template <class Context>
  [[nodiscard]] auto bias_gradient(Context& context) const {
    return has_bias_ ? context.gradient(bias_) : GradientTarget<typename Context::Real>{};
  }
  template <class Context>
  [[nodiscard]] auto& plans(Context& context) const {
    using Kernel = kernel::Convolution<typename Context::Space>;
    return context.template persistent<typename Kernel::template Plans<Operand<Context>>>(this);
  }
  /// Returns scratch memory of the context, shared by all layers: it is empty between calls.
  template <class Context>
  [[nodiscard]] static auto& scratch(Context& context) {
    return context.template persistent<typename kernel::Convolution<typename Context::Space>::Scratch>(nullptr);
  }

  PerAxis<Dims> kernel_, stride_, padding_, padding_after_, dilation_;
  Index groups_;
  Parameter weight_, bias_;
  bool has_bias_;
};

}}}  // namespace lockstep::nn::detail
