// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <utility>

#include <lockstep/nn/context.hpp>
#include <lockstep/nn/detail/tokens_of.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

/// The block, with its activations computed twice: forward keeps its output only, and backward computes the rest again.
/// A model of n blocks then holds the activations of one of them at a time, for about a third more time. Results and
/// gradients are the same to the bit, dropout included. Parameters keep the names that they have without it.
/// The block computes no loss, and what it returns is not laid out by memory of its own.
/// @determinism that of the block
template <class Block>
class Recompute {
 public:
  explicit Recompute(Block block) : block_(std::move(block)) {}

  void visit(auto&& each) { block_.visit(each); }

  /// @shape takes and returns what the block does: Variables or Sequences
  template <class Context, class... Inputs>
  [[nodiscard]] auto forward(Context& context, Inputs const&... inputs) const {
    return context.recompute([this, inputs...](Context& c) { return block_.forward(c, inputs...); },
                             detail::tokens_of(inputs)...);
  }

 private:
  Block block_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
