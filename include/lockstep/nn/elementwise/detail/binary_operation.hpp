// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <type_traits>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/elementwise/binary_operation.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/staging.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn::detail {

/// Elementwise z = Rule(x, y), computed by the constructor. The caller registers the backward, so that a trace shows
/// the function's own name.
template <class Rule, class Context, int Rank>
class BinaryOperation {
 public:
  using Variable = VariableOf<Context, Rank>;

  /// @throws ShapeError, naming `name`, if the shapes differ
  BinaryOperation(Context& context, char const* name, Variable x, Variable y)
      : x_(x), y_(y), z_(output_of(context, name, x, y)) {
    Staging work(context);
    Kernel::template forward<Rule, Operand<Context>>(context.stream(), work.read(x.value).reshape(flat()),
                                                     work.read(y.value).reshape(flat()),
                                                     work.write(z_.value).reshape(flat()));
  }
  void backward(Context& context) const {
    Staging back(context);
    auto const dz = back.read(z_.gradient()).reshape(flat());
    if (auto const dx = back.gradient(x_)) backward_of<typename Rule::GradientX>(context, back, dz, y_, dx);
    if (auto const dy = back.gradient(y_)) backward_of<typename Rule::GradientY>(context, back, dz, x_, dy);
  }
  [[nodiscard]] Variable output() const noexcept { return z_; }

 private:
  using Kernel = kernel::BinaryOperation<typename Context::Space>;
  using Vector = TensorView<Operand<Context> const, 1, typename Context::Space>;

  [[nodiscard]] static Variable output_of(Context& context, char const* name, Variable const& x, Variable const& y) {
    expect<ShapeError>(x.value.extent == y.value.extent, [&] {
      auto message = std::string(name) + ": the sides are " + to_string(x.value.extent) + " and " +
                     to_string(y.value.extent) + "; their shapes must be equal";
      if constexpr (Rank == 2 && !std::is_same_v<Rule, kernel::Minus>)
        if (y.extent(0) == x.extent(0) && y.extent(1) == 1)
          message += "; to apply one number to each row, reshape the first side to " +
                     to_string(Extents<3>{x.extent(0), x.extent(1), 1});
      return message;
    });
    return context.template variable<Rank>(x.value.extent);
  }
  template <class Gradient>
  void backward_of(Context& context, Staging<Context>& back, Vector dz, Variable const& other,
                   GradientTarget<Operand<Context>> const& to) const {
    Vector second{};
    if constexpr (Gradient::reads_second) second = back.read(context.saved_value(other)).reshape(flat());
    Kernel::template backward<Gradient, Operand<Context>>(context.stream(), dz, second, {to.data, flat()}, to.write);
  }
  [[nodiscard]] Extents<1> flat() const noexcept { return Extents<1>{x_.value.size()}; }

  Variable x_, y_, z_;
};

}}}  // namespace lockstep::nn::detail
