// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/train/trainer/trainer_state.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_COLD_INLINE std::string TrainerState::to_json() const {
  json::Writer out;
  out.begin_object().member("version", 1).member("steps", done.steps).member("epochs", done.epochs);
  out.member("seed", std::to_string(seed)).member("optimizer", optimizer);
  out.member("loss_scale", static_cast<double>(loss_scale.scale)).member("good_steps", loss_scale.good_steps);
  out.member("skipped_steps", loss_scale.skipped).end_object();
  return std::move(out).text();
}

LOCKSTEP_COLD_INLINE TrainerState TrainerState::from_json(std::string const& text, std::string const& where) {
  SavedStateReader const in({"the state of the trainer", "trainer", "use another", 1}, text, where);
  TrainerState out;
  out.done.steps = in.integer("steps", 0, Progress::max_total_steps);
  out.done.epochs = in.integer("epochs", 0, Progress::max_total_steps);
  out.loss_scale = in.loss_scale(out.done.steps, SavedStateReader::ZeroScale::unscaled);
  out.seed = in.seed();
  out.optimizer = in.value().at("optimizer").string();
  return out;
}

LOCKSTEP_COLD_INLINE void save_state(parallel::AnySession& session, nn::ParameterLayout const& layout, bool first,
                                     TrainerSteps const& done, std::uint64_t seed, std::string const& path,
                                     Metadata metadata) {
  auto const& kind = session.kind();
  if (!first) {
    for (std::size_t i = 0; i < kind.states && session.shards_moments(); ++i) static_cast<void>(session.moment(i));
    return;
  }
  check_metadata(path, metadata);
  TrainerState const state{done, seed, session.loss_scale(), kind.optimizer};
  metadata.emplace_back(TrainerState::key, state.to_json());
  auto const moment = [](void* of, std::size_t i) { return static_cast<parallel::AnySession*>(of)->moment(i).data(); };
  write_finite_safetensors(path, layout, session.values(), session.buffers(), {kind.states, moment, &session}, metadata,
                           "; such a state cannot be trained on, and is not saved");
}

LOCKSTEP_COLD_INLINE TrainerSteps load_state(parallel::AnySession& session, nn::ParameterLayout const& layout,
                                             bool first, std::uint64_t seed, std::string const& path) {
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

}}}  // namespace lockstep::train::detail
