// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>
#include <type_traits>
#include <utility>

#include <lockstep/nn/buffer.hpp>
#include <lockstep/nn/context.hpp>
#include <lockstep/nn/parameter.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

/// The block as it is: its parameters and buffers stay what they are, and it computes as in evaluation, so without
/// dropout and with BatchNorm's running statistics. Nothing of it is kept for backward, and no gradient flows through
/// it. Parameters keep the names that they have without it. For a part that was learned elsewhere: Trainer::load.
/// @determinism that of the block
template <class Block>
class Frozen {
 public:
  explicit Frozen(Block block) : block_(std::move(block)) { freeze(block_); }

  void visit(auto&& each) { block_.visit(each); }

  /// @shape takes and returns what the block does: Variables or Sequences
  template <class Context, class... Inputs>
  [[nodiscard]] auto forward(Context& context, Inputs const&... inputs) const {
    static_assert(
        requires { block_.forward(context, inputs...); },
        "Lockstep: the frozen block has no forward(context, inputs...) const for these inputs; one that predicts of a "
        "batch gets a forward that its predict calls; see docs/how-to/fine-tune.md");
    auto const mode = context.set_mode(Mode::evaluation);
    auto const made = block_.forward(context, inputs...);
    context.set_mode(mode);
    return made;
  }

 private:
  static void freeze(auto& node) {
    if constexpr (std::is_same_v<std::remove_reference_t<decltype(node)>, Parameter>)
      node.frozen = true;
    else if constexpr (!std::is_same_v<std::remove_reference_t<decltype(node)>, Buffer>)
      node.visit([](std::string_view, auto& child) { freeze(child); });
  }

  Block block_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
