// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <exception>
#include <filesystem>
#include <system_error>

#include <lockstep/core/folder.hpp>
#include <lockstep/train/trainer/detail/checkpointing.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_COLD_INLINE Checkpointing::Checkpointing(Checkpoints const& options, parallel::AnySession& session,
                                                  nn::ParameterLayout const& layout, std::uint64_t seed,
                                                  AnyLoader const& loader, data::Split const& split, FitPlan& plan,
                                                  std::string best_by)
    : options_(options),  // absolute folder, also if the process changes its working directory
      session_(session),
      layout_(layout),
      seed_(seed),
      loader_(loader),
      split_(split),
      plan_(plan),
      best_by_(std::move(best_by)) {
  options_.folder = absolute_path(options_.folder);
}

LOCKSTEP_COLD_INLINE nn::Loss<HostSpace> Checkpointing::resume(RunRecord& record) {
  parallel::SessionState state(0, 0, 0);
  if (is_main_rank() && options_.folder.empty())
    for (auto const& [name, value] : {std::pair{"every", options_.every}, std::pair{"keep", options_.keep}})
      if (value > 0)
        throw ConfigError("fit: checkpoints." + std::string(name) + " is " + std::to_string(value) +
                          " and checkpoints.folder is empty, so that nothing would be saved; name a folder");
  if (is_main_rank() && !options_.folder.empty()) check_metadata("fit: checkpoints.metadata", options_.metadata);
  bool const reads = is_main_rank() && !options_.resume.empty();
  if (reads) {
    state = empty_state();
    auto const progress = load_checkpoint(options_.resume, layout_, state);
    check_finite_parameters(layout_, state.values(), state.buffers(), options_.resume + ": ",
                            ", so that training cannot continue from it; remove it, and resume from the one before it");
    plan_.before = progress.before;
    check(progress, record);
    resumed_step_ = progress.steps;
    state.text = progress.to_json(best_by_);
  }
  std::array<double, 4> sent{};  // zeros on the other ranks
  if (is_main_rank())
    sent = {reads ? 1.0 : 0.0, static_cast<double>(state.text.size()), options_.folder.empty() ? 0.0 : 1.0,
            static_cast<double>(options_.every)};
  session_.all_reduce(sent);
  saves_ = sent[2] != 0;
  every_ = static_cast<Index>(sent[3]);
  record.run_began = Clock::seconds();
  if (sent[0] == 0) return {};
  if (!reads) {
    state = empty_state();
    state.text.resize(static_cast<std::size_t>(sent[1]));
  }
  session_.restore(state);
  auto progress = Progress::from_json(state.text, "the first rank's checkpoint");
  plan_.before = progress.before;
  record.run_began -= progress.seconds;
  record.steps = progress.steps;
  record.samples = record.samples_before = plan_.samples(progress.steps);
  record.resumed_at = std::move(progress.resumed_at);
  record.resumed_at.push_back(progress.steps);
  record.evaluations = std::move(progress.evaluations);
  record.loss_parts = std::move(progress.loss_parts);
  record.gemm_algorithms = std::move(progress.gemm_algorithms);
  record.train_loss = progress.epoch_loss.mean();
  if (record.loss_scale && progress.loss_scale) record.loss_scale = progress.loss_scale;
  return progress.epoch_loss;
}

LOCKSTEP_COLD_INLINE void Checkpointing::prepare() const {
  if (!saves_ || !is_main_rank()) return;
  try_folder(options_.folder, file_bytes());
  refuse_other_runs();
  remove_partial_checkpoints(options_.folder);  // not earlier: another run may be writing there
}

LOCKSTEP_COLD_INLINE void Checkpointing::check_folder() const {
  if (!saves_ || !is_main_rank()) return;
  detail::check_folder(options_.folder, file_bytes());
  refuse_other_runs();
}

LOCKSTEP_COLD_INLINE std::size_t Checkpointing::file_bytes() const {
  return detail::file_bytes(options_.folder, layout_, session_.kind().states, options_.metadata);
}

LOCKSTEP_COLD_INLINE void Checkpointing::refuse_other_runs() const {
  auto const earlier = newest_checkpoint(options_.folder);
  if (earlier.empty()) return;
  if (options_.resume.empty())
    throw ConfigError("fit: the checkpoint folder has checkpoints of an earlier run, the newest " + earlier +
                      ", but this run starts from step 0; name another folder, remove them, or resume with .resume = "
                      "train::newest_checkpoint(folder)");
  if (!is_in_folder(options_.resume, options_.folder))
    throw ConfigError("fit: the checkpoint folder has checkpoints of another run, the newest " + earlier +
                      ", but this run resumes from " + options_.resume + "; name another folder, or remove them");
  if (checkpoint_steps(options_.folder).back() > resumed_step_)
    throw ConfigError(
        "fit: the checkpoint folder has later checkpoints, the newest " + earlier + ", than " + options_.resume +
        ", from which this run resumes, and they would be mistaken for its own; remove them, or name another folder");
}

LOCKSTEP_INLINE void Checkpointing::save_if_due(RunRecord const& record, nn::Loss<HostSpace> const& epoch_loss,
                                                bool ends) {
  if (!saves_ || !(ends || is_due(record.steps))) return;
  if (!is_main_rank()) return gather_moments();
  try {
    save(checkpoint_path(options_.folder, step_name(record.steps)), record, epoch_loss);
  } catch (DataError const& error) {
    if (!ends) throw;
    save_elsewhere(record, epoch_loss, error);
  }
  unconfirmed_step_ = record.steps;
  if (ends) confirm();
}

LOCKSTEP_INLINE void Checkpointing::confirm() {
  auto const step = std::exchange(unconfirmed_step_, 0);
  if (step > 0 && options_.keep > 0) remove_old_checkpoints(options_.folder, step, options_.keep);
}

LOCKSTEP_COLD_INLINE std::string Checkpointing::set_aside(Index steps) const {
  if (!saves_ || !is_main_rank()) return {};
  auto const all = checkpoint_steps(options_.folder);
  if (all.size() < 2 || all.back() != steps) return {};
  auto const path = [&](std::string const& name) { return options_.folder + "/" + name + ".safetensors"; };
  auto const renamed = path("suspect_" + step_name(steps));
  if (::rename(path(step_name(steps)).c_str(), renamed.c_str()) != 0) return {};
  return "; the parameters of this step were moved to " + renamed + ", and the newest checkpoint is " +
         path(step_name(all[all.size() - 2]));
}

LOCKSTEP_COLD_INLINE void Checkpointing::save_after_error(RunRecord const& record,
                                                          nn::Loss<HostSpace> const& epoch_loss) const noexcept {
  if (!saves_ || !is_main_rank()) return;
  try {
    if (!session_.shards_moments()) save(checkpoint_path(options_.folder, step_name(record.steps)), record, epoch_loss);
  } catch (NotFinite const&) {
  } catch (std::exception const&) {  // the first error is reported
  }
}

LOCKSTEP_COLD_INLINE void Checkpointing::save(std::string const& path, RunRecord const& record,
                                              nn::Loss<HostSpace> const& epoch_loss) const {
  auto const moment = [](void* session, std::size_t i) {
    return static_cast<parallel::AnySession*>(session)->moment(i).data();
  };
  save_checkpoint(path, layout_, session_.values(), session_.buffers(), {session_.kind().states, moment, &session_},
                  {.steps = record.steps,
                   .effective_batch_size = record.effective_batch_size,
                   .reproducible = record.reproducible,
                   .seed = seed_,
                   .epoch_loss = epoch_loss,
                   .seconds = Clock::seconds() - record.run_began,
                   .resumed_at = record.resumed_at,
                   .evaluations = record.evaluations,
                   .data = loader_state(record.steps),
                   .loss_scale = session_.loss_scale(),
                   .gemm_algorithms = record.gemm_algorithms,
                   .before = plan_.before,
                   .optimizer = session_.kind().optimizer,
                   .loss_parts = record.loss_parts},
                  options_.metadata, SavedNumbers::finite, best_by_);
}

LOCKSTEP_COLD_INLINE void Checkpointing::save_elsewhere(RunRecord const& record, nn::Loss<HostSpace> const& epoch_loss,
                                                        DataError const& error) const {
  bool const whole = !session_.shards_moments();  // the other ranks send their parts of the moments only once
  std::string const what = whole ? "checkpoint" : "file with the parameters, without the optimizer's state,";
  std::string reasons = error.what();
  std::error_code none;
  for (auto const& folder : {std::filesystem::current_path(none), std::filesystem::path(temporary_folder())}) {
    if (folder.empty()) continue;
    auto const path =
        (folder / ("lockstep-" + std::to_string(::getpid()) + "-" + step_name(record.steps) + ".safetensors")).string();
    try {
      if (whole)
        save(path, record, epoch_loss);
      else
        save_parameters(path, layout_, session_.values(), options_.metadata, session_.buffers());
    } catch (DataError const& second) {
      reasons += std::string("; ") + second.what();
      continue;
    }
    throw DataError(reasons + "; the last " + what + " is " + path + " instead: move it to a safe place");
  }
  throw DataError(reasons + "; the last steps are lost");
}

LOCKSTEP_COLD_INLINE parallel::SessionState Checkpointing::empty_state() const {
  return {layout_.size(), layout_.buffer_size(), static_cast<int>(session_.kind().states)};
}

LOCKSTEP_COLD_INLINE void Checkpointing::gather_moments() const {
  for (std::size_t i = 0; i < session_.kind().states && session_.shards_moments(); ++i)
    static_cast<void>(session_.moment(i));
}

LOCKSTEP_COLD_INLINE void Checkpointing::check(Progress const& progress, RunRecord const& record) const {
  auto const refuse = [&](std::string const& what, std::string const& was, std::string const& is) {
    throw ConfigError(options_.resume + ": was saved with " + what + " " + was + ", but training would continue with " +
                      is + "; make them equal, or start a new run");
  };
  auto const check_loader = [&] {
    try {
      loader_.check(progress.data);
    } catch (DataError const& error) {
      throw DataError(options_.resume + ": " + error.what());
    }
  };
  if (loader_.resumes())  // with other samples, a batch by tokens differs too
    if (progress.data.samples != loader_.samples()) check_loader();
  if (progress.effective_batch_size != record.effective_batch_size)
    refuse("an effective batch of", std::to_string(progress.effective_batch_size),
           std::to_string(record.effective_batch_size));
  auto const& optimizer = session_.kind().optimizer;
  if (!progress.optimizer.empty() && !optimizer.empty() && progress.optimizer != optimizer)
    refuse("the optimizer", progress.optimizer, optimizer);
  if (progress.reproducible != record.reproducible)
    throw ConfigError(options_.resume + ": was saved " + reproducible_text(progress.reproducible) +
                      ", but training would continue " + reproducible_text(record.reproducible) +
                      "; make them equal, or start a new run");
  if (progress.seed != seed_) refuse("the seed", std::to_string(progress.seed), std::to_string(seed_));
  if (loader_.resumes()) {
    check_loader();
    if (!(loader_state(progress.steps) == progress.data))
      throw ConfigError(options_.resume + ": was saved at epoch " + std::to_string(progress.data.epoch) +
                        ", position " + std::to_string(progress.data.position) + ", but step " +
                        std::to_string(progress.steps) +
                        " does not begin there with this loader's options; use the tail of the earlier run");
  }
}

LOCKSTEP_COLD_INLINE std::string Checkpointing::reproducible_text(int reproducible) {
  return reproducible > 0 ? "under Reproducible with " + std::to_string(reproducible) + " shards"
                          : "without Reproducible";
}

LOCKSTEP_COLD_INLINE data::LoaderState Checkpointing::loader_state(Index steps) const {
  return loader_.state_before(split_, plan_.trainer_epoch(steps), plan_.begin(steps));
}

}}}  // namespace lockstep::train::detail
