// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <utility>

#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>
#include <lockstep/nn/elementwise/add.hpp>
#include <lockstep/nn/random/dropout.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// y = x + dropout(part(norm(x))): a transformer part with pre-normalization, whose residual stream is never
/// normalized. The norm is named "norm", next to the part's own names.
/// @determinism as the part
template <class Norm, class Part>
class PreNorm : detail::RejectedSequenceCalls {
 public:
  /// @throws ConfigError unless 0 <= dropout < 1
  PreNorm(Norm norm, Part part, double dropout = 0)
      : norm_(std::move(norm)), part_(std::move(part)), dropout_(dropout) {}

  /// Names the norm "norm", and the part's parameters as the part does.
  void visit(auto&& each) {
    each("norm", norm_);
    part_.visit(each);
  }

  /// Applies the part to norm(x). `more` are further arguments of the part, such as a memory or a bias.
  /// @shape x.tokens [slots, width]   @shape returns as x
  /// @throws ShapeError if x does not have the width of norm and part
  template <class Context, class... More>
  [[nodiscard]] SequenceOf<Context> forward(Context& context, SequenceOf<Context> const& x, More const&... more) const {
    return add(context, x, part_.forward(context, norm_.forward(context, x), more...), dropout_);
  }
  /// Rejects calls without the context in front, or without an input, at compile time.
  using detail::RejectedSequenceCalls::forward;

 private:
  Norm norm_;
  Part part_;
  Dropout dropout_;
};

}}}  // namespace lockstep::nn
