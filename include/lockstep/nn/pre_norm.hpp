// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <utility>

#include <lockstep/nn/add.hpp>
#include <lockstep/nn/context.hpp>
#include <lockstep/nn/dropout.hpp>
#include <lockstep/nn/sequence.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

/// y = x + dropout(part(norm(x))): a part of a transformer whose residual stream is never normalised. The norm is named
/// "norm", beside the part's own names.
/// @determinism that of the part
template <class Norm, class Part>
class PreNorm {
 public:
  /// @throws ConfigError unless 0 <= dropout < 1
  PreNorm(Norm norm, Part part, double dropout = 0)
      : norm_(std::move(norm)), part_(std::move(part)), dropout_(dropout) {}

  void visit(auto&& each) {
    each("norm", norm_);
    part_.visit(each);
  }

  /// What else the part takes, such as a memory or a bias, follows x.
  /// @shape x.tokens [slots, width]   @shape returns as x
  /// @throws ShapeError when x has another width than norm or part
  template <class Context, class... More>
  [[nodiscard]] SequenceOf<Context> forward(Context& context, SequenceOf<Context> const& x, More const&... more) const {
    return add(context, x, part_.forward(context, norm_.forward(context, x), more...), dropout_);
  }

 private:
  Norm norm_;
  Part part_;
  Dropout dropout_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
