// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <string_view>
#include <type_traits>
#include <utility>

#include <lockstep/nn/autograd/loss.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Placeholder for any visitor in the concept below (nvcc accepts no lambda there).
struct AnyVisitor {
  /// Does nothing.
  template <class Name, class Child>
  void operator()(Name&&, Child&) const {}
};

/// Visitor of a model's children: calls f(name, child). Rejects temporaries, and children without a name, at compile
/// time.
template <class Function>
class ChildVisitor {
 public:
  /// @param f called with the name and the child
  explicit ChildVisitor(Function f) : f_(std::move(f)) {}
  /// Calls f(name, child).
  template <class Child>
  void operator()(std::string_view name, Child& child) const {
    f_(name, child);
  }
  /// Rejects a temporary child.
  template <class Child>
  requires(!std::is_lvalue_reference_v<Child>) void operator()(std::string_view, Child&&) const {
    static_assert(std::is_lvalue_reference_v<Child>,
                  "Lockstep: visit calls each(name, child) with a temporary object or a number: a child is a member of "
                  "the model, a layer or an nn::Parameter");
  }
  /// Rejects a name behind the child.
  template <class Child>
  requires(!std::is_convertible_v<Child&, std::string_view>) void operator()(Child&, std::string_view) const {
    static_assert(sizeof(Child) == 0,
                  "Lockstep: visit calls each(child, name): the name comes first, each(\"hidden\", hidden); see "
                  "docs/reference/model.md");
  }
  /// Rejects a child without a name.
  template <class Child>
  void operator()(Child&&) const {
    static_assert(sizeof(Child) == 0,
                  "Lockstep: visit calls each(child): give each child a name, each(\"hidden\", hidden); see "
                  "docs/reference/model.md");
  }

 private:
  Function f_;
};

/// Requires `visit(each)`, which calls `each(name, child)` for every layer and parameter, in forward order.
template <class AnyModel>
concept HasParameters = requires(AnyModel& model, AnyVisitor each) {
  model.visit(each);
};

/// Requires `forward(context, batch)`, which returns the batch's loss as a sum and a weight.
template <class AnyModel, class Context, class Batch>
concept HasForward = requires(AnyModel const& model, Context& context, Batch const& batch) {
  { model.forward(context, batch) } -> std::same_as<LossOf<Context>>;
};

/// Requires `predict(context, batch)`, which returns the predictions that metrics read.
template <class AnyModel, class Context, class Batch>
concept HasPredict = requires(AnyModel const& model, Context& context, Batch const& batch) {
  model.predict(context, batch);
};

/// Requires `loss(context, prediction, batch)`, which computes the batch's loss from the result of `predict`. An
/// evaluation that needs predictions and loss then runs the model once.
template <class AnyModel, class Context, class Batch>
concept HasLoss = HasPredict<AnyModel, Context, Batch> &&
    requires(AnyModel const& model, Context& context, Batch const& batch) {
  { model.loss(context, model.predict(context, batch), batch) } -> std::same_as<LossOf<Context>>;
};

/// A model that a trainer can train: an immutable value that names its parameters and computes a loss, in `forward` or
/// from its predictions.
template <class AnyModel, class Context, class Batch>
concept Model = std::copy_constructible<AnyModel> && HasParameters<AnyModel> &&
    (HasForward<AnyModel, Context, Batch> || HasLoss<AnyModel, Context, Batch>);

/// Returns the batch's loss, from `forward` if the model has one.
template <class AnyModel, class Context, class Batch>
requires(HasForward<AnyModel, Context, Batch> || HasLoss<AnyModel, Context, Batch>)  //
    [[nodiscard]] LossOf<Context> loss_of(AnyModel const& model, Context& context, Batch const& batch) {
  if constexpr (HasForward<AnyModel, Context, Batch>) {
    return model.forward(context, batch);
  } else {
    return model.loss(context, model.predict(context, batch), batch);
  }
}

}}}  // namespace lockstep::nn
