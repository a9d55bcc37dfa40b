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
#include <lockstep/train/checkpoint/checkpoint.hpp>
#include <lockstep/train/detail/saved_state_reader.hpp>
#include <lockstep/train/files/safetensors.hpp>
#include <lockstep/train/trainer/detail/any_session.hpp>
#include <lockstep/train/trainer/detail/trainer_access.hpp>
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

  [[nodiscard]] std::string to_json() const {
    json::Writer out;
    out.begin_object().member("version", 1).member("steps", done.steps).member("epochs", done.epochs);
    out.member("seed", std::to_string(seed)).member("optimizer", optimizer);
    out.member("loss_scale", static_cast<double>(loss_scale.scale)).member("good_steps", loss_scale.good_steps);
    out.member("skipped_steps", loss_scale.skipped).end_object();
    return std::move(out).text();
  }
  [[nodiscard]] static TrainerState from_json(std::string const& text, std::string const& where) {
    SavedStateReader const in({"the state of the trainer", "trainer", "use another", 1}, text, where);
    TrainerState out;
    out.done.steps = in.integer("steps", 0, Progress::most_steps);
    out.done.epochs = in.integer("epochs", 0, Progress::most_steps);
    out.loss_scale = in.loss_scale(out.done.steps, SavedStateReader::ZeroScale::unscaled);
    out.seed = in.seed();
    out.optimizer = in.value().at("optimizer").string();
    return out;
  }
};

/// Implements `save_state` on the first rank (`first`) and on the others.
inline void save_state(AnySession& session, nn::ParameterLayout const& layout, bool first, TrainerSteps const& done,
                       std::uint64_t seed, std::string const& path, Metadata metadata) {
  auto const& kind = session.kind();
  if (!first) {
    for (std::size_t i = 0; i < kind.states && session.shards_moments(); ++i) static_cast<void>(session.moment(i));
    return;
  }
  TrainerState const state{done, seed, session.loss_scale(), kind.optimizer};
  metadata.emplace_back(TrainerState::key, state.to_json());
  auto const moment = [](void* of, std::size_t i) { return static_cast<AnySession*>(of)->moment(i); };
  write_safetensors(path, layout, session.values().data(), session.buffers().data(), {kind.states, moment, &session},
                    metadata);
}

/// Implements `load_state`. Returns the trainer's work before the save.
inline TrainerSteps load_state(AnySession& session, nn::ParameterLayout const& layout, bool first, std::uint64_t seed,
                               std::string const& path) {
  auto const& kind = session.kind();
  parallel::SessionState state(layout.size(), layout.buffer_size(), static_cast<int>(kind.states));
  std::array<double, 1> size{};
  if (first) {
    auto const read =
        load_state_of(path, layout, TrainerState::key, "load_state reads files of train::save_state", state,
                      [&](std::string const& text) { return TrainerState::from_json(text, path); });
    auto const expect_same = [&](std::string const& what, std::string const& was, std::string const& now) {
      if (was != now)
        throw ConfigError(path + ": was saved with " + what + " " + was + ", but training would continue with " + now +
                          "; make them equal");
    };
    expect_same("the seed", std::to_string(read.seed), std::to_string(seed));
    expect_same("the optimizer", read.optimizer, kind.optimizer);
    state.text = read.to_json();
    size[0] = static_cast<double>(state.text.size());
  }
  session.all_reduce(size);
  state.text.resize(static_cast<std::size_t>(size[0]));
  session.restore(state);
  auto const read = TrainerState::from_json(state.text, "the first rank's state");
  session.set_loss_scale(read.loss_scale);
  return read.done;
}

}  // namespace detail

/// Saves all state that a trainer needs to continue your own training loop. The file has the parameters and buffers,
/// which `Trainer::load` and a Predictor can read too. It also has the optimizer's state, the number of steps and the
/// loss scale. The first rank writes; the file appears complete or not at all. Your loop saves the position in the
/// data, for example in `metadata`.
/// @collective with DistributedDataParallel
/// @throws DataError if the file cannot be written; ConfigError within an evaluation by the averages of an
/// optim::Averaged
template <class Model, class Optimizer, class Policy>
void save_state(Trainer<Model, Optimizer, Policy>& trainer, std::string const& path, Metadata const& metadata = {}) {
  using Parts = detail::TrainerAccess;
  Parts::expect_values(trainer, "save_state");
  detail::save_state(Parts::any_session(trainer), trainer.layout(), trainer.rank() == 0, Parts::done(trainer),
                     Parts::seed(trainer), path, metadata);
}

/// Restores the state that `save_state` saved, under any policy and number of ranks. The next step is the one that
/// would have followed. The first rank reads; all ranks receive the state. Read the strings with `train::load_text`.
/// @collective with DistributedDataParallel
/// @throws DataError, on the first rank, if the file cannot be read, belongs to another model, or has parameters only;
/// ConfigError if the seed or the optimizer differs
template <class Model, class Optimizer, class Policy>
void load_state(Trainer<Model, Optimizer, Policy>& trainer, std::string const& path) {
  using Parts = detail::TrainerAccess;
  Parts::expect_values(trainer, "load_state");
  Parts::done(trainer) = detail::load_state(Parts::any_session(trainer), trainer.layout(), trainer.rank() == 0,
                                            Parts::seed(trainer), path);
}

}}}  // namespace lockstep::train
