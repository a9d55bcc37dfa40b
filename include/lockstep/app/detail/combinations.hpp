// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sstream>
#include <string>

#include <lockstep/app/backend.hpp>
#include <lockstep/app/options.hpp>
#include <lockstep/app/parallel.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/launch/engine.hpp>
#include <lockstep/parallel/wire_format.hpp>

namespace lockstep::inline LOCKSTEP_ABI::app::detail {

inline void check_sharding(Options const& options) {
  if (!options.shard_optimizer) return;
  if (options.parallel != Parallel::ddp)
    throw ConfigError(std::string("--shard-optimizer with --parallel ") + name(options.parallel) +
                      ": it is ranks that share the optimizer's moments; use --parallel ddp, or leave it out");
  if (options.backend == Backend::cuda)
    throw ConfigError(
        "--shard-optimizer with --backend cuda: on GPUs every rank keeps all of the optimizer's moments; leave it "
        "out, or use --backend host");
}

inline void check_gradient_wire(Options const& options) {
  if (options.gradient_wire == parallel::WireFormat::float32) return;
  auto const refuse = [&](std::string const& what) {
    throw ConfigError(std::string("--gradient-wire ") + name(options.gradient_wire) + " with " + what);
  };
  if (options.parallel != Parallel::ddp)
    refuse(std::string("--parallel ") + name(options.parallel) +
           ": it is ranks that send gradients; use --parallel ddp, or leave it out");
  if (options.reproducible > 0)
    refuse(
        "--reproducible: each rank would round what it has summed over its shards, and bits would depend on the "
        "number of ranks; leave out either");
  if (options.backend == Backend::cuda && options.engine != launch::Engine::nccl)
    refuse(
        "--backend cuda, where NCCL does not join the ranks: what goes over the host is summed in float32; leave "
        "it out, or use --engine nccl");
}

inline void check_bucket_cap(Options const& options) {
  if (!options.bucket_cap_mb || options.parallel == Parallel::ddp) return;
  std::ostringstream megabytes;
  megabytes << *options.bucket_cap_mb;
  throw ConfigError("--bucket-cap-mb " + megabytes.str() + " with --parallel " + name(options.parallel) +
                    ": it is ranks that send gradients; use --parallel ddp, or leave it out");
}

inline void check_replica_checks(Options const& options) {
  if (options.check_replicas_every > 0 && options.parallel == Parallel::single)
    throw ConfigError("--check-replicas-every " + std::to_string(options.check_replicas_every) +
                      " with --parallel single: there is one replica and none to compare it with; use --parallel dp or "
                      "ddp, or leave it out");
}

inline void check_timed_products(Options const& options) {
  if (options.timed_products && options.backend == Backend::host)
    throw ConfigError(
        "--timed-products with --backend host: it is cuBLASLt that offers several algorithms for a product; leave it "
        "out, or use --backend cuda");
}

inline void check_doctor(Options const& options, bool best_given) {
  if (!options.doctor) return;
  auto const refuse = [](std::string const& flag) {
    throw ConfigError("--doctor with " + flag + ": it measures, and trains and keeps nothing; leave out either");
  };
  if (options.resume != Options::never) refuse("--resume");
  if (options.checkpoint_every > 0) refuse("--checkpoint-every");
  if (options.keep_checkpoints > 0) refuse("--keep-checkpoints");
  if (options.trace) refuse("--trace");
  if (options.max_restarts > 0) refuse("--max-restarts");
  if (best_given && !options.best_by.empty()) refuse("--best-by");
  if (options.patience > 0) refuse("--patience");
  if (options.plateau > 0) refuse("--lr-plateau");
  if (options.timed_products) refuse("--timed-products");
  if (options.max_steps) refuse("--max-steps");
  if (options.eval_every > 0) refuse("--eval-every");
  if (options.dry_run) refuse("--dry-run");
  if (options.shard_optimizer)
    throw ConfigError(
        "--doctor with --shard-optimizer: what it predicts is for ranks that keep all of the optimizer's moments; "
        "leave out either");
}

/// A program may have a default of its own, which says nothing of a run that cannot use it.
inline void check_best(Options const& options, bool given) {
  if (given && !options.best_by.empty() && options.save_dir.empty() && options.patience == 0 && options.plateau == 0)
    throw ConfigError(
        "--best-by without --save-dir, --patience or --lr-plateau: it would change nothing; add one of them");
}

inline void check_saving(Options const& options) {
  if (options.resume != Options::never && !options.init_from.empty())
    throw ConfigError("--resume with --init-from: a run that goes on has its parameters; leave out either");
  if (!options.save_dir.empty()) return;
  if (options.keep_checkpoints > 0)
    throw ConfigError("--keep-checkpoints without --save-dir: there are none to keep; name a directory");
  if (options.trace) throw ConfigError("--trace without --save-dir: it leaves files; name a directory for them");
  if (options.checkpoint_every > 0)
    throw ConfigError("--checkpoint-every without --save-dir: there is no place for checkpoints; name a directory");
  if (options.resume == Options::automatic)
    throw ConfigError("--resume auto without --save-dir: it looks for checkpoints there; name the run's directory");
}

/// What flags say together that cannot be, once all that follows from them is known.
/// @throws ConfigError with a sentence about the combination
inline void check_combinations(Options const& options, bool best_given) {
  check_sharding(options);
  check_gradient_wire(options);
  check_bucket_cap(options);
  check_replica_checks(options);
  check_timed_products(options);
  check_best(options, best_given);
  check_saving(options);
  check_doctor(options, best_given);
}

}  // namespace lockstep::inline LOCKSTEP_ABI::app::detail
