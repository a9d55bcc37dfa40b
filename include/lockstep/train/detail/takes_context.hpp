// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <type_traits>
#include <utility>

#include <lockstep/nn/autograd/model.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Type of a model's predictions for a batch.
template <class Model, class Context, class Batch>
using PredictionOf =
    decltype(std::declval<Model const&>().predict(std::declval<Context&>(), std::declval<Batch const&>()));

/// Returns whether a model's functions take the context by reference; otherwise a static_assert says so.
template <class Model, class Context, class Batch>
consteval bool takes_context() {
  constexpr bool constant =
      nn::detail::PredictConst<Model, Context, Batch> || nn::detail::ForwardConst<Model, Context, Batch>;
  static_assert(!constant,
                "Lockstep: the model's predict or forward takes the context as const or by value, and layers change "
                "it: declare predict(auto& context, auto const& batch) const; see docs/reference/model.md");
  if constexpr (!constant && nn::HasPredict<Model, Context, Batch>) {
    using Prediction = PredictionOf<Model, Context, Batch>;
    if constexpr (!std::is_void_v<Prediction>) {
      constexpr bool constant_in_loss = nn::detail::LossConst<Model, Context, Prediction, Batch>;
      static_assert(
          !constant_in_loss,
          "Lockstep: the model's loss takes the context as const or by value, and losses change it: declare "
          "loss(auto& context, auto const& prediction, auto const& batch) const; see docs/reference/model.md");
      return !constant_in_loss;
    }
  }
  return !constant;
}

}}}  // namespace lockstep::train::detail
