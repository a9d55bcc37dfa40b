// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <type_traits>
#include <utility>

#include <lockstep/nn/autograd/model.hpp>
#include <lockstep/train/detail/takes_context.hpp>
#include <lockstep/train/trainer/detail/loads_batches.hpp>
#include <lockstep/train/trainer/evaluation.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Makes the compiler report why a call of a model's function fails, unless it has reported an error in the body.
template <class Model, class Context, class Batch>
struct PredictCall {
  using Result = PredictionOf<Model, Context, Batch>;
};
template <class Model, class Context, class Batch>
struct LossCall {
  using Result = decltype(std::declval<Model const&>().loss(
      std::declval<Context&>(), std::declval<PredictionOf<Model, Context, Batch>>(), std::declval<Batch const&>()));
};
template <class Model, class Context, class Batch>
struct ForwardCall {
  using Result = decltype(std::declval<Model const&>().forward(std::declval<Context&>(), std::declval<Batch const&>()));
};

/// Reports why a model has no loss of a batch. If a function fits its call and yet cannot be called, an error in its
/// body has been reported.
template <class Model, class Context, class Batch>
consteval void explain_no_loss() {
  if constexpr (nn::HasPredict<Model, Context, Batch>) {
    using Prediction = PredictionOf<Model, Context, Batch>;
    constexpr bool predicts_nothing = std::is_void_v<Prediction>;
    static_assert(!predicts_nothing,
                  "Lockstep: the model's predict(context, batch) returns nothing: return the predictions, which loss "
                  "and metrics get, unless an error above is in it");
    if constexpr (!predicts_nothing) {
      constexpr bool calls = requires(Model const& model, Context& context, Batch const& batch) {
        model.loss(context, model.predict(context, batch), batch);
      };
      constexpr bool fits = !calls && nn::detail::LossFits<Model, Context, Prediction, Batch>;
      static_assert(calls || fits,
                    "Lockstep: the model has predict(context, batch), but no loss(context, prediction, batch) const -> "
                    "nn::LossOf<Context>, the sum over the batch and its weight, to compute from its result; see "
                    "docs/reference/model.md");
      static_assert(!calls,
                    "Lockstep: the model's loss(context, prediction, batch) does not return an nn::LossOf<Context>, "
                    "the sum over the batch and its weight, as nn::cross_entropy does; see docs/reference/model.md");
      if constexpr (fits) static_cast<void>(sizeof(LossCall<Model, Context, Batch>));
    }
  } else if constexpr (nn::detail::PredictFits<Model, Context, Batch>) {
    static_cast<void>(sizeof(PredictCall<Model, Context, Batch>));
  } else {
    constexpr bool calls = requires(Model const& model, Context& context, Batch const& batch) {
      model.forward(context, batch);
    };
    constexpr bool fits = !calls && nn::detail::ForwardFits<Model, Context, Batch>;
    static_assert(calls || fits,
                  "Lockstep: the model has no forward(context, batch) const -> nn::LossOf<Context> for the type of "
                  "these batches, nor predict(context, batch) and loss(context, prediction, batch), all const; see "
                  "docs/reference/model.md");
    static_assert(!calls,
                  "Lockstep: the model's forward(context, batch) does not return an nn::LossOf<Context>, the sum over "
                  "the batch and its weight. If it returns predictions, call it predict, and add loss(context, "
                  "prediction, batch); see docs/reference/model.md");
    if constexpr (fits) static_cast<void>(sizeof(ForwardCall<Model, Context, Batch>));
  }
}

/// Returns whether a model can learn from batches of the type; otherwise a static_assert explains why not.
template <class Model, class Replica, class Loaded>
consteval bool can_learn_from() {
  if constexpr (std::is_void_v<Loaded>) {  // the loader has reported its arguments
    return false;
  } else {
    using Context = typename Replica::Context;
    using Batch = typename Replica::template DeviceBatch<Loaded>;
    constexpr bool has_rows = requires(Batch const& batch) {
      { batch.rows() } -> std::convertible_to<Index>;
    };
    static_assert(has_rows,
                  "Lockstep: the collate's batch has no rows() const, which returns its number of samples; see "
                  "docs/how-to/custom-collate.md");
    if constexpr (!has_rows || !takes_context<Model, Context, Batch>()) {
      return false;
    } else {
      constexpr bool has_loss = nn::HasForward<Model, Context, Batch> || nn::HasLoss<Model, Context, Batch>;
      if constexpr (!has_loss) explain_no_loss<Model, Context, Batch>();
      return has_loss;
    }
  }
}

/// Returns whether a model can be evaluated by these metrics; otherwise a static_assert explains why not.
template <class Model, class Replica, class Loaded, class... Metrics>
consteval bool can_evaluate() {
  if constexpr (can_learn_from<Model, Replica, Loaded>()) {
    constexpr bool has_predictions = Replica::template has_predictions<Loaded, Metrics...>;
    static_assert(has_predictions,
                  "Lockstep: a metric of this evaluation reads predictions, and the model has no predict(context, "
                  "batch) const that returns them; see docs/reference/model.md");
    if constexpr (has_predictions) {
      constexpr bool added = Replica::template metrics_add<Loaded, Metrics...>;
      static_assert(added,
                    "Lockstep: a metric of this evaluation has no add(prediction, batch), which counts a batch: void "
                    "add(auto const& prediction, auto const& batch), with what the model's predict returns; see "
                    "docs/reference/trainer.md");
      return added;
    }
  }
  return false;
}

/// Returns whether a trainer's model can be trained with these types; otherwise a static_assert explains why not.
template <class Model, class Replica, class Loader, class Evaluation>
consteval bool can_fit() {
  constexpr bool loads = LoadsBatches<Loader>;  // g++ would explain a concept in 15 more lines
  static_assert(loads,
                "Lockstep: the first argument of fit is not a non-const data::DataLoader; put a dataset into one: "
                "data::DataLoader{dataset, sampler, collate, {.batch_size = 32}}; see docs/reference/data-loader.md");
  static_assert(is_evaluation<Evaluation>,
                "Lockstep: the second argument of fit is neither train::Evaluation{loader, metrics...} nor FitOptions; "
                "see docs/reference/trainer.md");
  if constexpr (!loads || !is_evaluation<Evaluation>)
    return false;
  else
    return can_learn_from<Model, Replica, typename Loader::Batch>() && Evaluation::loads;
}

}}}  // namespace lockstep::train::detail
