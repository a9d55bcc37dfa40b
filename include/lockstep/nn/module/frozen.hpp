// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include <lockstep/core/error.hpp>
#include <lockstep/nn/autograd/buffer.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/model.hpp>
#include <lockstep/nn/autograd/parameter.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Whether a frozen block computes the gradient of its input.
enum class InputGradient {
  none,      ///< no gradient flows through the block: for parts that come before every trained part
  computed,  ///< gradients flow through the block to trained parts before it: for adapters, or a loss of its features
};

/// Freezes a block: its parameters and buffers never change. Parameters keep the names that they have without this
/// wrapper. Trainer::load reads pretrained ones.
///
/// By default, it computes as in evaluation, without dropout and with BatchNorm's running statistics, and keeps nothing
/// for backward. With InputGradient::computed, it computes as in training, dropout included. Backward then takes as
/// long as for a trained block, except that Linear computes no gradients of its parameters.
/// @determinism as the block
template <class Block>
class Frozen {
 public:
  /// Takes the block and marks its parameters as frozen.
  /// @throws ConfigError for InputGradient::computed if the block has buffers, which training changes
  explicit Frozen(Block block, InputGradient input_gradient = InputGradient::none)
      : block_(std::move(block)), input_gradient_(input_gradient) {
    freeze(block_);
  }

  /// Names the block's parameters as the block does.
  void visit(auto&& each) { block_.visit(each); }

  /// Applies the block, in evaluation mode unless its input gradient is computed.
  /// @shape takes and returns what the block does: Variables or Sequences
  template <detail::IsContext Context, class... Inputs>
  [[nodiscard]] auto forward(Context& context, Inputs const&... inputs) const {
    static_assert(
        requires { block_.forward(context, inputs...); },
        "Lockstep: the frozen block has no forward(context, inputs...) const for these inputs; a block that predicts "
        "from a batch needs a forward that its predict calls; see docs/how-to/fine-tune.md");
    if (input_gradient_ == InputGradient::computed) return block_.forward(context, inputs...);
    struct RestoreMode {  // restores the mode even if the block throws
      Mode& mode;
      Mode before;
      ~RestoreMode() { mode = before; }
    } const restore_mode{context.parts().mode, std::exchange(context.parts().mode, Mode::evaluation)};
    auto const output = block_.forward(context, inputs...);
    auto const operation = [] {};
    if (auto* const tracer = context.parts().active_tracer()) trace_block(*tracer, typeid(operation).name());
    return output;
  }
  /// Rejects calls without the context in front at compile time.
  auto forward(detail::NoContext auto const& first, auto const&...) const { return detail::reject_call(first); }

 private:
  /// Traces the block as one operation: none of its layers registers a backward.
  template <class Tracer>
  void trace_block(Tracer& tracer, char const* type) const {
    int first = -1, last = -1;
    auto const collect = [&](auto const& self, auto& node) -> void {
      using Node = std::remove_reference_t<decltype(node)>;
      if constexpr (std::is_same_v<Node, Parameter>) {
        first = first < 0 ? node.ordinal : std::min(first, node.ordinal);
        last = std::max(last, node.ordinal);
      } else if constexpr (!std::is_same_v<Node, Buffer>) {
        ChildVisitor const each([&](std::string_view, auto& child) { self(self, child); });
        node.visit(each);
      }
    };
    collect(collect, const_cast<Block&>(block_));  // this visitor changes nothing
    tracer.ended(type, first, last);
  }
  void freeze(auto& node) {
    using Node = std::remove_reference_t<decltype(node)>;
    if constexpr (std::is_same_v<Node, Parameter>) {
      node.frozen = true;
    } else if constexpr (std::is_same_v<Node, Buffer>) {
      if (input_gradient_ == InputGradient::computed)
        throw ConfigError(
            "nn::Frozen: InputGradient::computed, but the block has buffers, such as the running statistics of "
            "BatchNorm, which would change in training; use InputGradient::none, or a block without buffers");
    } else {
      ChildVisitor const each([this](std::string_view, auto& child) { this->freeze(child); });
      node.visit(each);
    }
  }

  Block block_;
  InputGradient input_gradient_;
};

}}}  // namespace lockstep::nn
