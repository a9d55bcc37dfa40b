// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <type_traits>
#include <utility>

#include <lockstep/nn/autograd/model.hpp>
#include <lockstep/train/trainer/detail/loads_batches.hpp>
#include <lockstep/train/trainer/evaluation.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Returns whether a model can learn from batches of the type; otherwise a static_assert explains why not.
template <class Model, class Replica, class Loaded>
consteval bool can_learn_from() {
  if constexpr (std::is_void_v<Loaded>) {  // the loader has reported its arguments
    return false;
  } else {
    using Context = typename Replica::Context;
    using Batch = typename Replica::template DeviceBatch<Loaded>;
    constexpr bool has_loss = nn::HasForward<Model, Context, Batch> || nn::HasLoss<Model, Context, Batch>;
    constexpr bool predicts_nothing = [] {
      if constexpr (nn::HasPredict<Model, Context, Batch>)
        return std::is_void_v<decltype(std::declval<Model const&>().predict(std::declval<Context&>(),
                                                                            std::declval<Batch const&>()))>;
      return false;
    }();
    static_assert(has_loss || !predicts_nothing,
                  "Lockstep: the model's predict(context, batch) returns nothing: return the predictions, which loss "
                  "and metrics get");
    static_assert(has_loss || predicts_nothing || !nn::HasPredict<Model, Context, Batch>,
                  "Lockstep: the model has predict(context, batch), but no loss(context, prediction, batch) const -> "
                  "nn::LossOf<Context>, the sum over the batch and its weight, to compute from its result, "
                  "unless an error above is in it; see docs/reference/model.md");
    static_assert(has_loss || nn::HasPredict<Model, Context, Batch>,
                  "Lockstep: the model has no forward(context, batch) const -> nn::LossOf<Context> for the type of "
                  "these batches, nor predict(context, batch) and loss(context, prediction, batch), all const, "
                  "unless an error above is in them; see docs/reference/model.md");
    return has_loss;
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
    return has_predictions;
  } else {
    return false;
  }
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
