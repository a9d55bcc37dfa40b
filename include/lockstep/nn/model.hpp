// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>

#include <lockstep/nn/loss.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

/// Stands for any visitor in the concept below (nvcc takes no lambda there).
struct AnyVisitor {
  template <class Name, class Child>
  void operator()(Name&&, Child&) const {}
};

/// `visit(each)` calls `each(name, child)` for every layer and parameter, in forward order.
template <class M>
concept HasParameters = requires(M& model, AnyVisitor each) {
  model.visit(each);
};

/// `forward(context, batch)` returns the batch's loss as a sum and a weight.
template <class M, class Context, class Batch>
concept HasForward = requires(M const& model, Context& context, Batch const& batch) {
  { model.forward(context, batch) } -> std::same_as<LossOf<Context>>;
};

/// `predict(context, batch)` returns what metrics look at.
template <class M, class Context, class Batch>
concept HasPredict = requires(M const& model, Context& context, Batch const& batch) {
  model.predict(context, batch);
};

/// `loss(context, prediction, batch)` makes the batch's loss of what `predict` returned: an evaluation that wants both
/// then runs the model once.
template <class M, class Context, class Batch>
concept HasLoss = HasPredict<M, Context, Batch> && requires(M const& model, Context& context, Batch const& batch) {
  { model.loss(context, model.predict(context, batch), batch) } -> std::same_as<LossOf<Context>>;
};

/// What a trainer trains: an immutable value that names its parameters and computes a loss, in `forward`, or else of
/// what it predicts.
template <class M, class Context, class Batch>
concept Model = std::copy_constructible<M> && HasParameters<M> &&
    (HasForward<M, Context, Batch> || HasLoss<M, Context, Batch>);

/// The batch's loss: that of `forward` where the model has one.
template <class M, class Context, class Batch>
requires(HasForward<M, Context, Batch> || HasLoss<M, Context, Batch>)  //
    [[nodiscard]] LossOf<Context> loss_of(M const& model, Context& context, Batch const& batch) {
  if constexpr (HasForward<M, Context, Batch>) {
    return model.forward(context, batch);
  } else {
    return model.loss(context, model.predict(context, batch), batch);
  }
}

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
