// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/nn/autograd/buffer.hpp>
#include <lockstep/nn/autograd/parameter.hpp>
#include <lockstep/nn/autograd/parameter_gradients.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn::detail {

/// Returns the message for a parameter or buffer that forward uses but `visit` does not name, so that it has no offset.
[[nodiscard]] inline std::string unvisited_message(std::vector<Index> const& shape) {
  return "Context: forward uses a tensor of shape " + to_string(shape) +
         " that the model's visit does not name; have visit call each(\"name\", layer_) for every layer";
}
[[nodiscard]] inline std::string rank_message(std::vector<Index> const& shape, int rank) {
  return "Context: forward reads a tensor of shape " + to_string(shape) + " as one of " + std::to_string(rank) +
         " dimensions: call context.value<" + std::to_string(shape.size()) + ">, and reshape the view";
}

}}}  // namespace lockstep::nn::detail

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// The arenas in which a model's parameters, their gradients and its buffers have their numbers. Does not own them. A
/// part of nn::Context, for activations of type Scalar.
template <class Scalar, class Space>
class ParameterBinding {
 public:
  using Real = Accumulate<Scalar>;  ///< type of parameters and gradients

  /// Binds the values and gradients of `parameters` parameters. All gradients are dense.
  void bind(Real const* values, Real* gradients, std::size_t parameters) {
    values_ = values;
    gradients_.bind(gradients, parameters);
  }
  /// Binds the values and gradients of a layout's parameters; each gradient has the form that its parameter requests.
  void bind(Real const* values, Real* gradients, ParameterLayout const& layout) {
    values_ = values;
    gradients_.bind(gradients, layout);
  }
  /// Binds a copy of the values as Scalar, for matrix products on a device (nn::Staging::factor). Without it, values
  /// are rounded for every product. Only for 16-bit activations.
  void bind_half_precision_values(Scalar const* values) noexcept { half_precision_values_ = values; }
  /// Binds the values of the model's buffers. Only needed for a model with buffers.
  void bind_buffers(Real* buffers) noexcept { buffers_ = buffers; }

  /// Returns the value of a parameter.
  /// @throws ConfigError if the model's visit does not name the parameter
  template <int Rank>
  [[nodiscard]] TensorView<Real const, Rank, Space> value(Parameter const& p) const {
    expect<ConfigError>(p.offset >= 0, [&] { return detail::unvisited_message(p.shape); });
    expect_rank<Rank>(p.shape);
    TensorView<Real const, Rank, Space> view(values_ + p.offset, {});
    std::copy_n(p.shape.begin(), Rank, view.extent.begin());
    return view;
  }
  /// Returns a buffer of the model, to read or to write.
  /// @throws ConfigError if the model's visit does not name the buffer; ShapeError if it has another rank
  template <int Rank>
  [[nodiscard]] TensorView<Real, Rank, Space> value(Buffer const& b) const {
    expect<ConfigError>(b.offset >= 0, [&] { return detail::unvisited_message(b.shape); });
    expect_rank<Rank>(b.shape);
    TensorView<Real, Rank, Space> view(buffers_ + b.offset, {});
    std::copy_n(b.shape.begin(), Rank, view.extent.begin());
    return view;
  }
  /// Returns a parameter's value as Scalar; null if no such copy is bound.
  [[nodiscard]] Scalar const* half_precision_value(Parameter const& p) const noexcept {
    return half_precision_values_ ? half_precision_values_ + p.offset : nullptr;
  }

  /// Returns the gradients, with flags of those that this step has written.
  [[nodiscard]] ParameterGradients<Real, Space>& gradients() noexcept { return gradients_; }
  /// Returns the same to read.
  [[nodiscard]] ParameterGradients<Real, Space> const& gradients() const noexcept { return gradients_; }

 private:
  template <int Rank>
  static void expect_rank(std::vector<Index> const& shape) {  // rank 0: only the address is used
    expect<ShapeError>(Rank == 0 || std::ssize(shape) == Rank, [&] { return detail::rank_message(shape, Rank); });
  }

  Real const* values_ = nullptr;
  Scalar const* half_precision_values_ = nullptr;  // values_ as Scalar
  Real* buffers_ = nullptr;
  ParameterGradients<Real, Space> gradients_;
};

}}}  // namespace lockstep::nn
