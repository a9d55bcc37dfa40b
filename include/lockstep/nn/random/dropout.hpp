// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <tuple>
#include <type_traits>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/random/dropout.hpp>
#include <lockstep/kernel/row_dropout.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/autograd/staging.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Dropout. In training, y = x * keep / (1 - p), with keep = 1 for a random 1 - p of the elements and 0 for the others.
/// The mask differs in every forward pass. In evaluation, or with p = 0, the identity. Backward recomputes the mask
/// instead of storing it.
/// @determinism bitwise: a sample gets the same mask on any rank, in any row, with any padding
class Dropout : detail::RejectedCalls<2> {
 public:
  /// @throws ConfigError unless 0 <= probability < 1
  explicit Dropout(double probability) : mask_(kernel::DropoutMask::of(0, probability)) {}

  /// Names nothing: there are no parameters.
  void visit(auto&&) {}

  /// Returns this forward pass's mask, for layers that fuse dropout into their own kernels. Inactive in evaluation.
  template <class Context>
  [[nodiscard]] kernel::DropoutMask mask(Context& context) const {
    auto const mask = context.next_mask(mask_.dropped);  // always drawn: later masks must not depend on it
    return context.mode() == Mode::training && mask_.active() ? mask : kernel::DropoutMask{};
  }
  /// Returns the mask for the tokens of sequences.
  /// @throws ShapeError if the mask is active and a sequence has no position, which is its random key
  template <class Context>
  [[nodiscard]] kernel::RowDropout<typename Context::Space> mask(
      Context& context, kernel::SequenceLayout<typename Context::Space> const& layout) const {
    auto const mask = this->mask(context);
    expect<ShapeError>(!mask.active() || layout.positions.size() == layout.rows, [&] {
      return "Dropout: the input has " + std::to_string(layout.rows) + " sequences and there are " +
             std::to_string(layout.positions.size()) + " positions; each needs one: batch.positions()";
    });
    return {mask, layout};
  }

  /// Drops elements of tokens, keyed on the positions in the layout.
  template <class Context>
  [[nodiscard]] SequenceOf<Context> forward(Context& context, SequenceOf<Context> const& x) const {
    return x.with(forward(context, x.tokens, x.layout));
  }

  /// Drops the elements of one vector or image per sample independently.
  /// @shape x [rows, …, channels]   @shape positions [rows], each sample's position in the epoch: the random key
  /// @throws ShapeError if the number of positions is not the number of rows
  template <class Context, int Rank>
  [[nodiscard]] VariableOf<Context, Rank> forward(Context& context, VariableOf<Context, Rank> x,
                                                  TensorView<Index const, 1, typename Context::Space> positions) const {
    expect<ShapeError>(positions.size() == x.extent(0), [&] {
      return "Dropout: the input is " + to_string(x.value.extent) + " and there are " +
             std::to_string(positions.size()) + " positions; each row needs one: batch.positions()";
    });
    auto const tokens = detail::as_tokens(x, positions);
    return forward(context, tokens.tokens, tokens.layout).reshape(x.value.extent);
  }
  /// Rejects calls without positions at compile time.
  template <detail::IsContext Context, class Input>
  requires(!std::is_convertible_v<Input const&, SequenceOf<Context>>) [[nodiscard]] Input
      forward(Context&, Input const& x) const {
    static_assert(sizeof(Input) == 0,
                  "Lockstep: Dropout of a Variable takes the positions of the batch's samples, which key dropout: "
                  "layer.forward(context, x, batch.positions())");
    return x;
  }
  /// Rejects calls without the context in front, or without an input, at compile time.
  using detail::RejectedCalls<2>::forward;

 private:
  template <class Context>
  VariableOf<Context, 2> forward(Context& context, VariableOf<Context, 2> x,
                                 kernel::SequenceLayout<typename Context::Space> layout) const {
    using Kernel = kernel::Dropout<typename Context::Space>;
    using Operand = nn::Operand<Context>;
    auto const mask = this->mask(context, layout).mask;
    if (!mask.active()) return x;
    auto y = context.template variable<2>(x.value.extent);
    Staging work(context);
    Kernel::template apply<Operand>(context.stream(), mask, layout, work.read(x.value), work.write(y.value),
                                    Write::overwrite);
    context.on_backward(y, std::tuple{}, [=](Context& c) {
      Staging back(c);
      if (auto const dx = back.gradient(x))
        Kernel::template apply<Operand>(c.stream(), mask, layout, back.read(y.gradient()), {dx.data, x.value.extent},
                                        dx.write);
    });
    return y;
  }

  kernel::DropoutMask mask_;  // forward draws its key
};

}}}  // namespace lockstep::nn
