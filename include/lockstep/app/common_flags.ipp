// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <limits>

#include <lockstep/app/common_flags.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app {

LOCKSTEP_INLINE CommonFlags::CommonFlags(Command& command, Options& options, detail::Mpi mpi)
    : options_(options), command_(command), mpi_(mpi) {
  given_.add_to(command, options);
  command.group("Configuration");
  command.add_config();
  command.add_synonyms();
}

LOCKSTEP_INLINE void CommonFlags::resolve(int cores, launch::Environment const& place, Gpus const& gpus) {
  resolve_place(place, gpus);
  resolve_rest(cores, place, gpus);
}

LOCKSTEP_INLINE void CommonFlags::resolve_place(launch::Environment const& place, Gpus const& gpus) {
  resolve_backend(gpus);
  detail::check_local_rank(given_.local_rank, place);
}

LOCKSTEP_INLINE void CommonFlags::resolve_rest(int cores, launch::Environment const& place, Gpus const& gpus) {
  for (auto const& note : command_.notes()) options_.warnings.push_back(note);
  if (given_.engine == launch::Engine::mpi) detail::check_mpi(place, mpi_);
  resolve_ranks(cores, place);
  resolve_reproducible();
  resolve_engine(place, gpus);
  if (auto const note = detail::note_on_gpus(options_, place); given_.gpu_ids.empty() && !note.empty())
    options_.warnings.push_back(note);
  resolve_batch_size();
  resolve_prefetch();
  resolve_epochs();
  options_.cores = cores;
  int const here = place.size > 1 ? place.local_size : options_.ranks;
  options_.threads = given_.threads.value_or(std::max(1, cores / (here * options_.devices)));
  if (auto const note = detail::note_on_shared_processors(options_, here); !note.empty())
    options_.warnings.push_back(note);
  resolve_learning_rate();
  detail::Combinations(options_, command_, gpus).check();
}

LOCKSTEP_INLINE void CommonFlags::resolve_backend(Gpus const& gpus) {
  bool const named = !given_.gpu_ids.empty();
  auto const backend = given_.backend.value_or(named || gpus.count > 0 ? Backend::cuda : Backend::host);
  auto const flag = named ? "--gpu-ids " + given_.gpu_ids : "--backend cuda";
  if (backend == Backend::host && named)
    throw ConfigError(flag + " with --backend host: GPUs serve cuda; leave out either");
  if (backend == Backend::cuda && !gpus.built)
    throw ConfigError(flag +
                      (named ? ": there is no such GPU, because this program was built without CUDA; use --devices "
                               "N for host devices"
                             : ": this program was built without CUDA; use --backend host, or leave --backend "
                               "out"));
  if (backend == Backend::cuda && gpus.count == 0)
    throw ConfigError(flag + ": there is no GPU to use (" + gpus.why + "); use --backend host");
  for (int const gpu : options_.gpus)
    if (gpu >= gpus.count)
      throw ConfigError(flag + ": there is no GPU " + std::to_string(gpu) + "; this process sees " +
                        std::to_string(gpus.count) + ", numbered from 0");
  options_.backend = backend;
  if (backend == Backend::cuda && !named)
    for (int gpu = 0; gpu < gpus.count; ++gpu) options_.gpus.push_back(gpu);
}

LOCKSTEP_INLINE void CommonFlags::resolve_ranks(int cores, launch::Environment const& place) {
  bool const started = place.size > 1 && place.launcher != launch::Launcher::lockstep;
  if (started && given_.nproc)
    throw ConfigError(std::string("--nproc under ") + name(place.launcher) + " (" + place.variables +
                      "): the ranks have been started already; leave out either");
  int const units = options_.backend == Backend::cuda ? std::max(1, static_cast<int>(options_.gpus.size())) : cores;
  int const nproc = started                                         ? place.size
                    : given_.nproc == detail::GivenFlags::automatic ? units
                                                                    : given_.nproc.value_or(1);
  bool const on_each = !given_.gpu_ids.empty() && nproc == 1;  // of the GPUs in --gpu-ids, if one rank uses them all
  int const devices = given_.devices.value_or(on_each ? static_cast<int>(options_.gpus.size()) : 1);
  bool const joins = nproc > 1 || given_.engine == launch::Engine::nccl;
  auto const parallel = given_.parallel.value_or(joins ? Parallel::ddp : devices > 1 ? Parallel::dp : Parallel::single);
  auto const flag = std::string("--parallel ") + name(parallel);
  auto const ranks =
      started ? std::to_string(nproc) + " ranks of " + name(place.launcher) : "--nproc " + std::to_string(nproc);
  auto const wide = given_.devices ? "--devices " + std::to_string(devices) : "--gpu-ids " + given_.gpu_ids;
  if (parallel != Parallel::ddp && nproc > 1)
    throw ConfigError(flag + " with " + ranks + ": several ranks need --parallel ddp; " +
                      (started ? "start one" : "leave --nproc out") + ", or use ddp");
  if (parallel == Parallel::single && devices > 1)
    throw ConfigError(flag + " with " + wide +
                      ": several devices need --parallel dp or ddp; leave --devices out, or use one of them");
  if (nproc > 1 && devices > 1)
    throw ConfigError(ranks + " with " + wide +
                      ": ddp has one device in each rank; use --nproc for processes or --devices for threads");

  options_.parallel = parallel;
  options_.nproc = started ? 1 : nproc;
  if (options_.max_restarts > 0 && options_.nproc == 1)
    throw ConfigError("--max-restarts without --nproc: only processes that this program starts are restarted");
  if (options_.max_restarts > 0 && options_.checkpoint_every == 0)
    options_.warnings.push_back(
        "--max-restarts without --checkpoint-every: restarted ranks begin with the first step again");
  options_.ranks = parallel == Parallel::ddp ? std::max(nproc, devices) : 1;
  options_.devices = parallel == Parallel::dp ? given_.devices.value_or(default_devices()) : 1;
}

LOCKSTEP_INLINE void CommonFlags::resolve_engine(launch::Environment const& place, Gpus const& gpus) {
  bool const cuda = options_.backend == Backend::cuda, ddp = options_.parallel == Parallel::ddp;
  if (given_.engine == launch::Engine::nccl) {
    auto const refuse = [](std::string const& what) { throw ConfigError("--engine nccl" + what); };
    if (!cuda) refuse(" with --backend host: NCCL joins GPUs; use --backend cuda, or leave --engine out");
    if (!gpus.joined) refuse(": this program was built without NCCL (lockstep::nccl); use --engine process");
    if (!ddp) refuse(std::string(" with --parallel ") + name(options_.parallel) + ": only ranks are joined; use ddp");
  }
  bool const started = place.size > 1 && place.launcher != launch::Launcher::lockstep;
  bool const enough =
      started || (options_.nproc > 1 && static_cast<std::size_t>(options_.ranks) <= options_.gpus.size());
  bool const best = cuda && ddp && gpus.joined && enough && options_.reproducible == 0;
  options_.engine = given_.engine.value_or(best ? launch::Engine::nccl : launch::Engine::process);
}

LOCKSTEP_INLINE void CommonFlags::resolve_batch_size() {
  if (given_.batch_size && given_.global_batch_size)
    throw ConfigError("--batch-size with --global-batch-size: one determines the other; give one of them");
  options_.batch_size = given_.batch_size.value_or(options_.batch_size);
  Index const devices = options_.all_devices(), shards = options_.shards(), steps = options_.grad_accum_steps;
  bool const reproducible = options_.reproducible > 0;
  if (given_.global_batch_size) {
    check_multiple("--global-batch-size", *given_.global_batch_size, shards * steps,
                   std::to_string(shards) + (reproducible ? " shards x " : " ranks or devices x ") +
                       std::to_string(steps) + " accumulation steps");
    options_.batch_size = *given_.global_batch_size / (devices * steps);
  } else if (reproducible) {
    check_multiple(
        "--batch-size", options_.batch_size, shards / devices,
        std::to_string(shards) + " shards of --reproducible on " + std::to_string(devices) + " ranks or devices");
  }
  constexpr Index most = std::numeric_limits<std::int32_t>::max();  // of a DataLoader
  if (options_.shard_size() <= most) return;
  auto const flag = given_.global_batch_size ? "--global-batch-size " + std::to_string(*given_.global_batch_size)
                                             : "--batch-size " + std::to_string(options_.batch_size);
  throw ConfigError(flag + ": a batch " + (reproducible ? "of each shard" : "of each rank or device") + " has " +
                    std::to_string(options_.shard_size()) + " samples, and may have at most " + std::to_string(most) +
                    "; give fewer, and --grad-accum-steps for a larger step");
}

LOCKSTEP_INLINE void CommonFlags::check_multiple(char const* flag, Index value, Index unit,
                                                 std::string const& because) {
  if (value % unit == 0) return;
  Index const nearest = std::max(unit, (value + unit / 2) / unit * unit);
  throw ConfigError(std::string(flag) + " " + std::to_string(value) + ": must be a multiple of " +
                    std::to_string(unit) + " (" + because + "); the nearest that fits is " + std::to_string(nearest));
}

LOCKSTEP_INLINE void CommonFlags::resolve_prefetch() {
  if (!given_.prefetch_factor) return;
  if (command_.given("--prefetch"))
    throw ConfigError("--prefetch with --prefetch-factor: one determines the other; give one of them");
  auto const flag = "--prefetch-factor " + std::to_string(*given_.prefetch_factor),
             all = flag + " with " + std::to_string(options_.num_workers) + " --num-workers";
  options_.prefetch = *given_.prefetch_factor * std::max(1, options_.num_workers);
  if (options_.prefetch > detail::GivenFlags::max_prefetch)
    throw ConfigError(all + ": prefetched batches must be at most " + std::to_string(detail::GivenFlags::max_prefetch) +
                      "; give a smaller factor");
  options_.warnings.push_back(all + " is --prefetch " + std::to_string(options_.prefetch));
}

LOCKSTEP_INLINE void CommonFlags::resolve_epochs() {
  if (!given_.epochs && options_.max_steps) {
    options_.epochs = 0;
  } else {
    options_.epochs = given_.epochs.value_or(options_.epochs);
    given_.epochs = options_.epochs;
  }
}

LOCKSTEP_INLINE void CommonFlags::resolve_reproducible() {
  if (!given_.reproducible) return;
  options_.reproducible = *given_.reproducible;
  auto const flag = "--reproducible " + std::to_string(options_.reproducible);
  auto const why = parallel::shard_count_error(options_.reproducible, static_cast<int>(options_.all_devices()));
  if (!why.empty()) throw ConfigError(flag + ": " + why);
  if (given_.engine == launch::Engine::nccl)
    throw ConfigError(flag + " with --engine nccl: NCCL chooses an order of additions that depends on the number of " +
                      "ranks; leave --engine out");
  if (options_.lr_scaling != optim::LearningRateScaling::none && !options_.base_batch_size)
    throw ConfigError(flag + " with --lr-scaling: its base is one rank's batch, and so depends on the number of " +
                      "ranks; give --base-batch-size");
}

LOCKSTEP_INLINE void CommonFlags::resolve_learning_rate() {
  if (command_.given("--warmup-epochs")) {
    if (command_.given("--warmup-steps"))
      throw ConfigError("--warmup-steps with --warmup-epochs: both set the length of the warm-up; give one of them");
    options_.warmup_steps = 0;  // a default of the program
  }
  if (options_.lr_scaling == optim::LearningRateScaling::none) {
    if (options_.base_batch_size)
      throw ConfigError(
          "--base-batch-size without --lr-scaling: it would change nothing; add --lr-scaling linear or sqrt, or "
          "leave it out");
  } else if (options_.warmup_epochs == 0 && options_.warmup_steps == 0 &&
             options_.effective_batch_size() > options_.base_batch_size.value_or(options_.batch_size)) {
    options_.warnings.push_back(
        "the learning rate is scaled up without warm-up; --warmup-epochs 1 makes the start safer");
  }
}

LOCKSTEP_INLINE int CommonFlags::default_devices() const noexcept {
  return options_.backend == Backend::cuda ? static_cast<int>(options_.gpus.size()) : 2;
}

}}}  // namespace lockstep::app
