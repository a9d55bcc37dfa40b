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

namespace detail {

// Whether a model's functions fit their calls, and whether they take a const context. Overload resolution between them
// and the functions below answers this without the bodies of the model's functions, in which an error may be.

/// Result of the functions below.
struct NotOfModel {};
/// Is chosen by a call only if the model's function does not fit.
struct AnyFunctions {
  template <class... Arguments>
  NotOfModel predict(Arguments const&...) const;
  template <class... Arguments>
  NotOfModel loss(Arguments const&...) const;
  template <class... Arguments>
  NotOfModel forward(Arguments const&...) const;
};
/// Is chosen by a call only if the model's function does not fit, or is a template that takes a const context or a
/// copy.
template <class Context, class... Others>
struct ConstFunctions {
  NotOfModel predict(Context const&, Others const&...) const;
  NotOfModel loss(Context const&, Others const&...) const;
  NotOfModel forward(Context const&, Others const&...) const;
};
/// A call is ambiguous between these and functions of a model that are templates, and take a const context or a copy.
struct ConstTemplates {
  template <class Context, class Batch>
  NotOfModel predict(Context const&, Batch const&) const;
  template <class Context, class Prediction, class Batch>
  NotOfModel loss(Context const&, Prediction const&, Batch const&) const;
  template <class Context, class Batch>
  NotOfModel forward(Context const&, Batch const&) const;
};

template <class Model, class Functions>
struct PredictOr : Model, Functions {
  using Functions::predict;
  using Model::predict;
};
template <class Model, class Functions>
struct LossOr : Model, Functions {
  using Functions::loss;
  using Model::loss;
};
template <class Model, class Functions>
struct ForwardOr : Model, Functions {
  using Functions::forward;
  using Model::forward;
};

/// Makes the names that a model has ambiguous in a class that derives from both.
struct FunctionNames {
  int predict, loss, forward;
};
template <class Model>
struct Names : Model, FunctionNames {};
template <class Model>
concept CanDerive = std::is_class_v<Model> && !std::is_final_v<Model>;
/// Whether the address of a member is one of a layer or a number.
template <class Address>
concept OfObject = !std::is_member_function_pointer_v<Address>;
template <class Model>
concept NamesPredict = CanDerive<Model> && !requires {
  &Names<Model>::predict;
}
&&!requires { requires OfObject<decltype(&Model::predict)>; };
template <class Model>
concept NamesLoss = CanDerive<Model> && !requires {
  &Names<Model>::loss;
}
&&!requires { requires OfObject<decltype(&Model::loss)>; };
template <class Model>
concept NamesForward = CanDerive<Model> && !requires {
  &Names<Model>::forward;
}
&&!requires { requires OfObject<decltype(&Model::forward)>; };

template <class Model, class Functions, class Context, class Batch>
concept PredictBy = requires(PredictOr<Model, Functions> const& model, Context& context, Batch const& batch) {
  { model.predict(context, batch) } -> std::same_as<NotOfModel>;
};
template <class Model, class Functions, class Context, class Prediction, class Batch>
concept LossBy = requires(LossOr<Model, Functions> const& model, Context& context, Prediction (&predict)(),
                          Batch const& batch) {
  { model.loss(context, predict(), batch) } -> std::same_as<NotOfModel>;
};
template <class Model, class Functions, class Context, class Batch>
concept ForwardBy = requires(ForwardOr<Model, Functions> const& model, Context& context, Batch const& batch) {
  { model.forward(context, batch) } -> std::same_as<NotOfModel>;
};

/// Whether a model has predict(context, batch), with or without an error in its body.
template <class Model, class Context, class Batch>
concept PredictFits = NamesPredict<Model> && !PredictBy<Model, AnyFunctions, Context, Batch>;
/// Whether a model has loss(context, prediction, batch), with or without an error in its body.
template <class Model, class Context, class Prediction, class Batch>
concept LossFits = NamesLoss<Model> && !LossBy<Model, AnyFunctions, Context, Prediction, Batch>;
/// Whether a model has forward(context, batch), with or without an error in its body.
template <class Model, class Context, class Batch>
concept ForwardFits = NamesForward<Model> && !ForwardBy<Model, AnyFunctions, Context, Batch>;

/// Whether a model's predict takes a const context or a copy.
template <class Model, class Context, class Batch>
concept PredictConst = NamesPredict<Model> && PredictBy<Model, ConstFunctions<Context, Batch>, Context, Batch> &&
    !PredictBy<Model, ConstTemplates, Context, Batch>;
/// Whether a model's loss takes a const context or a copy.
template <class Model, class Context, class Prediction, class Batch>
concept LossConst =
    NamesLoss<Model> && LossBy<Model, ConstFunctions<Context, Prediction, Batch>, Context, Prediction, Batch> &&
    !LossBy<Model, ConstTemplates, Context, Prediction, Batch>;
/// Whether a model's forward takes a const context or a copy.
template <class Model, class Context, class Batch>
concept ForwardConst = NamesForward<Model> && ForwardBy<Model, ConstFunctions<Context, Batch>, Context, Batch> &&
    !ForwardBy<Model, ConstTemplates, Context, Batch>;

}  // namespace detail

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
