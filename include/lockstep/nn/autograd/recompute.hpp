// SPDX-License-Identifier: Apache-2.0
#pragma once
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
  explicit Recompute(Block block) : block_(std::move(block)) {}

  void visit(auto&& each) { block_.visit(each); }

  /// Applies the block.
  /// @shape takes and returns what the block does: Variables or Sequences
  template <class Context, class... Inputs>
  [[nodiscard]] auto forward(Context& context, Inputs const&... inputs) const {
    return context.recompute([this, inputs...](Context& c) { return block_.forward(c, inputs...); },
                             detail::tokens_of(inputs)...);
  }

 private:
  Block block_;
};

}}}  // namespace lockstep::nn
