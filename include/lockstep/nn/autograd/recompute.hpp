// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <tuple>
#include <utility>

#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/detail/tokens_of.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Activation checkpointing: forward keeps only the block's output, and backward computes the block again. A model of n
/// blocks then holds the activations of one block at a time and takes about a third more time. Results and gradients
/// are bit-identical, dropout included. Parameters keep the names that they have without this wrapper. The block must
/// not compute a loss, and its result's layout must not use memory that the block allocates.
/// @determinism as the block
template <class Block>
class Recompute {
 public:
  /// Takes the block to compute twice.
  explicit Recompute(Block block) : block_(std::move(block)) {}

  /// Names the block's parameters as the block does.
  void visit(auto&& each) { block_.visit(each); }

  /// Applies the block.
  /// @shape takes what the block does: Variables, Sequences, and views without gradient such as positions; returns what
  /// the block returns
  template <class Context, class... Inputs>
  [[nodiscard]] auto forward(Context& context, Inputs const&... inputs) const {
    auto const block = [this, inputs...](Context& c) { return block_.forward(c, inputs...); };
    return std::apply([&](auto const&... variables) { return context.recompute(block, variables...); },
                      std::tuple_cat(variable_of(inputs)...));
  }

 private:
  /// Returns the input's Variable, or nothing for an input without gradient, such as positions.
  template <class Input>
  static auto variable_of(Input const& input) {
    if constexpr (requires { detail::tokens_of(input).slot; })
      return std::tuple{detail::tokens_of(input)};
    else
      return std::tuple{};
  }

  Block block_;
};

}}}  // namespace lockstep::nn
