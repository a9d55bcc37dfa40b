// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <utility>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/float16.hpp>

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

namespace detail {
template <class Model, class Stored>
class StoredAs : public Model {
  static_assert(sizeof(nn::ActivationsOf<Model>) != sizeof(Stored),
                "Lockstep: this model stores its activations in 16 bits already; leave nn::InBfloat16 or nn::InFloat16 "
                "out");

 public:
  using Activations = Stored;

  explicit StoredAs(Model model) : Model(std::move(model)) {}
};
}  // namespace detail

/// The same model with its activations and their gradients stored as bfloat16, in half the memory:
/// `Trainer{nn::InBfloat16{Classifier{config}}, …}`. Parameters, their gradients and the optimizer's state stay float,
/// and so does all arithmetic; what is saved fits the model itself.
template <class Model>
class InBfloat16 : public detail::StoredAs<Model, bfloat16> {
 public:
  explicit InBfloat16(Model model) : detail::StoredAs<Model, bfloat16>(std::move(model)) {}
};

/// The same as float16: of eight times the precision, and of numbers from 2^-24 to 65504 only, so that a trainer scales
/// the loss (optim::LossScaler). For GPUs whose products do not take bfloat16.
template <class Model>
class InFloat16 : public detail::StoredAs<Model, float16> {
 public:
  explicit InFloat16(Model model) : detail::StoredAs<Model, float16>(std::move(model)) {}
};

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
