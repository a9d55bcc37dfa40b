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
  { model.forward(context, batch) } -> std::same_as<Loss<typename Context::Space>>;
};

/// `predict(context, batch)` returns what metrics look at.
template <class M, class Context, class Batch>
concept HasPredict = requires(M const& model, Context& context, Batch const& batch) {
  model.predict(context, batch);
};

/// What a trainer trains: an immutable value that names its parameters and computes a loss.
template <class M, class Context, class Batch>
concept Model = std::copy_constructible<M> && HasParameters<M> && HasForward<M, Context, Batch>;

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
