// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/elementwise/binary_operation.hpp>
#include <lockstep/kernel/sequence/sequence_operation.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/autograd/staging.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn::detail {

/// Broadcasts a row to all tokens of its sequence: z[s, c] = Rule(x[s, c], row[r, c]) for the slots s of sequence r,
/// computed by the constructor. The caller registers the backward, so that a trace shows the function's own name.
template <class Rule, class Context>
class RowBroadcast {
 public:
  using Sequence = SequenceOf<Context>;
  using Variable = VariableOf<Context, 2>;

  /// @param operand names the rows in the error: "add: the row to add is"
  /// @throws ShapeError unless there is a row for each sequence, with the channels of x
  RowBroadcast(Context& context, char const* operand, Sequence const& x, Variable row)
      : x_(x), row_(row), z_(output_of(context, operand, x, row)) {
    Staging work(context);
    Kernel::template run<Rule, Operand>(context.stream(), x.layout, work.read(x.tokens.value), work.read(row.value),
                                        work.write(z_.value), Write::overwrite);
  }
  void backward(Context& context) const {
    Staging back(context);
    auto const dz = back.read(z_.gradient());
    if (auto const dx = back.gradient(x_.tokens)) backward_of_x(context, back, dz, dx);
    if (auto const drow = back.gradient(row_)) {
      TensorView<Operand const, 2, Space> x{};
      if constexpr (Rule::GradientY::reads_second) x = back.read(context.saved_value(x_.tokens));
      Kernel::template backward<typename Rule::GradientY, Operand>(context.stream(), x_.layout, dz, x,
                                                                   {drow.data, row_.value.extent}, drow.write);
    }
  }
  [[nodiscard]] Sequence output() const { return x_.with(z_); }

 private:
  using Space = typename Context::Space;
  using Operand = nn::Operand<Context>;
  using Kernel = kernel::SequenceOperation<Space>;

  [[nodiscard]] static Variable output_of(Context& context, char const* operand, Sequence const& x,
                                          Variable const& row) {
    Extents<2> const needed{x.layout.rows, x.width()};
    expect<ShapeError>(row.value.extent == needed, [&] {
      return std::string(operand) + " " + to_string(row.value.extent) + " of " + to_string(needed) +
             ", the rows and channels of x; the two must be equal";
    });
    return context.template variable<2>(x.tokens.value.extent);
  }
  void backward_of_x(Context& context, Staging<Context>& back, TensorView<Operand const, 2, Space> dz,
                     GradientTarget<Operand> const& dx) const {
    using Gradient = typename Rule::GradientX;
    if constexpr (Gradient::reads_second) {
      Kernel::template run<Gradient, Operand>(context.stream(), x_.layout, dz, back.read(context.saved_value(row_)),
                                              {dx.data, z_.value.extent}, dx.write);
    } else {
      Extents<1> const flat{z_.value.size()};
      kernel::BinaryOperation<Space>::template backward<Gradient, Operand>(context.stream(), dz.reshape(flat), {},
                                                                           {dx.data, flat}, dx.write);
    }
  }

  Sequence x_;
  Variable row_, z_;
};

}}}  // namespace lockstep::nn::detail
