// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <string>
#include <utility>

#include <lockstep/core/error.hpp>
#include <lockstep/core/json_writer.hpp>
#include <lockstep/optim/loss_scaler.hpp>
#include <lockstep/parallel/policy.hpp>
#include <lockstep/parallel/session.hpp>
#include <lockstep/train/checkpoint/checkpoint.hpp>
#include <lockstep/train/detail/saved_state_reader.hpp>
#include <lockstep/train/files/safetensors.hpp>
#include <lockstep/train/trainer/trainer.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {
namespace detail {

/// Saved state of a trainer in addition to its arenas.
struct TrainerState {
  TrainerSteps done;
  std::uint64_t seed = 0;
  optim::LossScaler::State loss_scale;
  std::string optimizer;  ///< the optimizer's name(), if it has one

  static constexpr char const* key = "lockstep.trainer";  ///< key in the file's metadata

  [[nodiscard]] std::string to_json() const;
  [[nodiscard]] static TrainerState from_json(std::string const& text, std::string const& where);
};

/// Implements `save_state` on the first rank (`first`) and on the others.
void save_state(parallel::AnySession& session, nn::ParameterLayout const& layout, bool first, TrainerSteps const& done,
                std::uint64_t seed, std::string const& path, Metadata metadata);

/// Implements `load_state`. Returns the trainer's work before the save.
TrainerSteps load_state(parallel::AnySession& session, nn::ParameterLayout const& layout, bool first,
                        std::uint64_t seed, std::string const& path);

}  // namespace detail

/// Saves all state that a trainer needs to continue your own training loop. The file has the parameters and buffers,
/// which `Trainer::load` and a Predictor can read too. It also has the optimizer's state, the number of steps and the
/// loss scale. The first rank writes; the file appears complete or not at all. Your loop saves the position in the
/// data, for example in `metadata`.
/// @collective with DistributedDataParallel
/// @throws DataError if the file cannot be written; ConfigError within an evaluation by the averages of an
/// optim::Averaged, or if `metadata` cannot be saved; Error if a parameter is not finite
template <class Model, class Optimizer, class Policy>
void save_state(Trainer<Model, Optimizer, Policy>& trainer, std::string const& path, Metadata const& metadata = {}) {
  auto const& state = trainer.state();
  state.expect_parameters("save_state");
  detail::save_state(trainer.session(), trainer.layout(), trainer.rank() == 0, state.done, state.seed, path, metadata);
}

/// Restores the state that `save_state` saved, under any policy and number of ranks. The next step is the one that
/// would have followed. The first rank reads; all ranks receive the state. Read the strings with `train::load_text`.
/// @collective with DistributedDataParallel
/// @throws DataError, on the first rank, if the file cannot be read, belongs to another model, or has parameters only;
/// ConfigError if the seed or the optimizer differs
template <class Model, class Optimizer, class Policy>
void load_state(Trainer<Model, Optimizer, Policy>& trainer, std::string const& path) {
  auto& state = trainer.state();
  state.expect_parameters("load_state");
  state.done = detail::load_state(trainer.session(), trainer.layout(), trainer.rank() == 0, state.seed, path);
  state.was_loaded = true;
}

}}}  // namespace lockstep::train

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/trainer/trainer_state.ipp>
#endif
