// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <utility>

#include <lockstep/nn/add.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

/// y = x + block(x). Parameters keep the names that they have without it.
/// @determinism that of the block
template <class Block>
class Residual {
 public:
  explicit Residual(Block block) : block_(std::move(block)) {}

  void visit(auto&& each) { block_.visit(each); }

  /// @shape x as the block takes and returns it: rows, a Sequence or pictures
  /// @throws ShapeError when the block returns another shape
  template <class Context, class X>
  [[nodiscard]] X forward(Context& context, X const& x) const {
    return add(context, x, block_.forward(context, x));
  }

 private:
  Block block_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
