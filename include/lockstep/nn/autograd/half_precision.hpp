// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <type_traits>
#include <utility>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/float16.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

namespace detail {
template <class Model>
struct ActivationsOf {
  using type = float;
};
template <class Model>
requires requires { typename Model::Activations; }
struct ActivationsOf<Model> {
  using Stored = typename Model::Activations;
  static constexpr bool trains =
      std::is_same_v<Stored, float> || std::is_same_v<Stored, bfloat16> || std::is_same_v<Stored, float16>;
  static_assert(trains,
                "Lockstep: a model stores its activations as float, bfloat16 or float16; in double, only "
                "nn::check_gradients computes; see docs/reference/model.md");
  using type = std::conditional_t<trains, Stored, float>;
};
}  // namespace detail

/// Storage type of a model's activations: the model's own `using Activations = …;`, by default float. Rejects other
/// types than float, bfloat16 and float16 at compile time.
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

/// Stores a model's activations and their gradients as bfloat16, in half the memory:
/// `Trainer{nn::InBfloat16{Classifier{config}}, …}`. Parameters, their gradients, the optimizer's state and all
/// arithmetic stay float. Checkpoints are those of the model itself.
template <class Model>
class InBfloat16 : public detail::StoredAs<Model, bfloat16> {
 public:
  /// Takes the model to run.
  explicit InBfloat16(Model model) : detail::StoredAs<Model, bfloat16>(std::move(model)) {}
};

/// Stores a model's activations as float16: eight times the precision of bfloat16, but only numbers from 2^-24 to
/// 65504. A trainer therefore scales the loss (optim::LossScaler). For GPUs whose matrix products do not support
/// bfloat16.
template <class Model>
class InFloat16 : public detail::StoredAs<Model, float16> {
 public:
  /// Takes the model to run.
  explicit InFloat16(Model model) : detail::StoredAs<Model, float16>(std::move(model)) {}
};

}}}  // namespace lockstep::nn
