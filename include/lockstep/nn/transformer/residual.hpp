// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <utility>

#include <lockstep/nn/detail/argument_checks.hpp>
#include <lockstep/nn/elementwise/add.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// y = x + block(x). Parameters keep the names that they have without this wrapper.
/// @determinism as the block
template <class Block>
class Residual : detail::RejectedCalls<2> {
 public:
  /// Takes the block.
  explicit Residual(Block block) : block_(std::move(block)) {}

  /// Names the block's parameters as the block does.
  void visit(auto&& each) { block_.visit(each); }

  /// Returns x + block(x). x is any input of the block: rows, a Sequence or images. The block receives further
  /// arguments, such as the positions that key dropout.
  /// @throws ShapeError if the block returns another shape
  template <detail::IsContext Context, class Input, class... More>
  [[nodiscard]] Input forward(Context& context, Input const& x, More const&... more) const {
    return add(context, x, block_.forward(context, x, more...));
  }
  /// Rejects calls without the context in front, or without an input, at compile time.
  using detail::RejectedCalls<2>::forward;

 private:
  Block block_;
};

}}}  // namespace lockstep::nn
