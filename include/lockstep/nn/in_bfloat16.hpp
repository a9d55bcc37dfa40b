// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <type_traits>
#include <utility>

#include <lockstep/core/bfloat16.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

namespace detail {
template <class Model>
struct ActivationsOf {
  using type = float;
};
template <class Model>
requires requires { typename Model::Activations; }
struct ActivationsOf<Model> {
  using type = typename Model::Activations;
};
}  // namespace detail

/// What a model's activations are stored as: its own `using Activations = …;`, or else float.
template <class Model>
using ActivationsOf = typename detail::ActivationsOf<Model>::type;

/// The same model with its activations and their gradients stored as bfloat16, in half the memory:
/// `Trainer{nn::InBfloat16{Classifier{config}}, …}`. Parameters, their gradients and the optimizer's state stay float,
/// and so does all arithmetic; what is saved fits the model itself.
template <class Model>
class InBfloat16 : public Model {
  static_assert(!std::is_same_v<ActivationsOf<Model>, bfloat16>,
                "Lockstep: this model stores its activations as bfloat16 already; leave nn::InBfloat16 out");

 public:
  using Activations = bfloat16;

  explicit InBfloat16(Model model) : Model(std::move(model)) {}
};

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
