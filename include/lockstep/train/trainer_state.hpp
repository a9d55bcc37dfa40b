// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include <lockstep/core/error.hpp>
#include <lockstep/core/json.hpp>
#include <lockstep/core/json_writer.hpp>
#include <lockstep/optim/loss_scaler.hpp>
#include <lockstep/optim/optimizer.hpp>
#include <lockstep/parallel/policy.hpp>
#include <lockstep/train/checkpoint.hpp>
#include <lockstep/train/detail/loss_scale_of.hpp>
#include <lockstep/train/detail/trainer_parts.hpp>
#include <lockstep/train/safetensors.hpp>
#include <lockstep/train/trainer.hpp>

namespace lockstep::inline LOCKSTEP_ABI::train {
namespace detail {

/// What is saved of a trainer beside its numbers.
struct TrainerState {
  TrainerSteps done;
  std::uint64_t seed = 0;
  optim::LossScaler::State loss_scale;
  std::string optimizer;  ///< its name(), where it has one

  static constexpr char const* key = "lockstep.trainer";  ///< of the file's metadata

  [[nodiscard]] std::string to_json() const {
    json::Writer out;
    out.begin_object().member("version", 1).member("steps", done.steps).member("epochs", done.epochs);
    out.member("seed", std::to_string(seed)).member("optimizer", optimizer);
    out.member("loss_scale", static_cast<double>(loss_scale.scale)).member("good_steps", loss_scale.good_steps);
    out.member("skipped_steps", loss_scale.skipped).end_object();
    return std::move(out).text();
  }
  [[nodiscard]] static TrainerState from_json(std::string const& text, std::string const& where) {
    auto const value = json::parse(text, where);
    if (value.at("version").integer() != 1)
      throw DataError(where + ": the state of the trainer has version " +
                      std::to_string(value.at("version").integer()) + "; this library reads version 1");
    auto const refuse = [&](char const* name, std::string const& found) {
      throw DataError(where + ": in the state of the trainer " + name + " is " + found +
                      ", which no trainer leaves; the file was damaged, take another");
    };
    auto const whole = [&](auto& to, char const* name, Index most) {
      auto const number = value.at(name).integer();
      if (number < 0 || number > most) refuse(name, std::to_string(number));
      to = static_cast<std::remove_reference_t<decltype(to)>>(number);
    };
    TrainerState out;
    whole(out.done.steps, "steps", Progress::most_steps), whole(out.done.epochs, "epochs", Progress::most_steps);
    whole(out.loss_scale.good_steps, "good_steps", out.done.steps);
    whole(out.loss_scale.skipped, "skipped_steps", out.done.steps);
    auto const scale = value.at("loss_scale").number();
    int exponent = 0;
    if (scale != 0 &&
        !(scale >= optim::LossScaler::least && scale <= optim::LossScaler::most && std::frexp(scale, &exponent) == 0.5))
      refuse("loss_scale", std::to_string(scale));
    out.loss_scale.scale = static_cast<float>(scale);
    auto const& seed = value.at("seed").string();
    auto const read = std::from_chars(seed.data(), seed.data() + seed.size(), out.seed);
    if (read.ec != std::errc{} || read.ptr != seed.data() + seed.size()) refuse("seed", seed);
    out.optimizer = value.at("optimizer").string();
    return out;
  }
};

}  // namespace detail

/// Saves all that a trainer goes on from, for a loop of your own: parameters and buffers, for `Trainer::load` and a
/// Predictor too, the optimizer's moments, how many steps were made, and the loss scale. The first rank writes; the
/// file is there whole or not at all. Where the data goes on is up to your loop: `metadata` can say so.
/// @collective with DistributedDataParallel   @throws DataError when the file cannot be written
template <class Model, class Optimizer, class Policy>
void save_state(Trainer<Model, Optimizer, Policy>& trainer, std::string const& path, Metadata metadata = {}) {
  using Parts = detail::TrainerParts;
  auto& session = Parts::session(trainer);
  constexpr auto states = static_cast<std::size_t>(Optimizer::states);
  if (trainer.rank() != 0) {
    if constexpr (requires { session.shards_moments(); })
      for (std::size_t i = 0; i < states && session.shards_moments(); ++i) static_cast<void>(session.moment(i));
    return;
  }
  detail::TrainerState const state{Parts::done(trainer), Parts::seed(trainer), detail::loss_scale_of(session),
                                   optim::name_of<Optimizer>()};
  metadata.emplace_back(detail::TrainerState::key, state.to_json());
  auto const moment = [](void* of, std::size_t i) -> float const* {
    return static_cast<std::remove_reference_t<decltype(session)>*>(of)->moment(i);
  };
  detail::write_safetensors(path, trainer.layout(), trainer.values().data(), trainer.buffers().data(),
                            {states, moment, &session}, metadata);
}

/// Goes on from what `save_state` saved, under any policy and with any number of ranks: the next step is the one that
/// would have followed. The first rank reads; all have it afterwards. Texts are read by `train::load_text`.
/// @collective with DistributedDataParallel   @throws DataError, on the first rank, when the file cannot be read, is of
/// another model, or holds parameters alone; ConfigError when the seed or the optimizer is another
template <class Model, class Optimizer, class Policy>
void load_state(Trainer<Model, Optimizer, Policy>& trainer, std::string const& path) {
  using Parts = detail::TrainerParts;
  auto& session = Parts::session(trainer);
  parallel::SessionState state(trainer.layout().size(), trainer.layout().buffer_size(), Optimizer::states);
  std::array<double, 1> size{};
  if (trainer.rank() == 0) {
    auto const read = detail::load_state_of(
        path, trainer.layout(), detail::TrainerState::key, "load_state takes what train::save_state has saved", state,
        [&](std::string const& text) { return detail::TrainerState::from_json(text, path); });
    auto const expect_same = [&](std::string const& what, std::string const& was, std::string const& now) {
      if (was != now)
        throw ConfigError(path + ": was saved with " + what + " " + was + " and training would go on with " + now +
                          "; make them equal");
    };
    expect_same("the seed", std::to_string(read.seed), std::to_string(Parts::seed(trainer)));
    expect_same("the optimizer", read.optimizer, optim::name_of<Optimizer>());
    state.text = read.to_json();
    size[0] = static_cast<double>(state.text.size());
  }
  session.all_reduce(size);
  state.text.resize(static_cast<std::size_t>(size[0]));
  session.restore(state);
  auto const read = detail::TrainerState::from_json(state.text, "the first rank's state");
  Parts::done(trainer) = read.done;
  detail::set_loss_scale(session, read.loss_scale);
}

}  // namespace lockstep::inline LOCKSTEP_ABI::train
