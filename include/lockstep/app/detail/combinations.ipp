// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/app/detail/combinations.hpp>
#include <lockstep/core/shortest.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app::detail {

LOCKSTEP_INLINE void Combinations::check() {
  check_sharding();
  check_gradient_wire();
  check_bucket_cap();
  check_replica_checks();
  note_wide_dp();
  check_autotune_gemm();
  check_shapes_ahead();
  check_attention_kernels();
  check_min_factor();
  check_best();
  check_data();
  check_saving();
  check_doctor();
  check_evaluate();
}

LOCKSTEP_INLINE void Combinations::check_sharding() {
  auto const refuse_it = [&](std::string const& sentence) {
    refuse("--shard-optimizer", &Options::shard_optimizer, false, "--shard-optimizer with " + sentence);
  };
  if (options_.parallel != Parallel::ddp)
    refuse_it(std::string("--parallel ") + name(options_.parallel) +
              ": only ranks share the optimizer's moments; use --parallel ddp, or leave it out");
}

LOCKSTEP_INLINE void Combinations::check_gradient_wire() {
  auto const refuse_it = [&](std::string const& what) {
    refuse("--gradient-wire", &Options::gradient_wire, parallel::WireFormat::float32,
           std::string("--gradient-wire ") + name(options_.gradient_wire) + " with " + what);
  };
  if (options_.parallel != Parallel::ddp)
    refuse_it(std::string("--parallel ") + name(options_.parallel) +
              ": only ranks send gradients; use --parallel ddp, or leave it out");
  if (options_.reproducible > 0)
    refuse_it(
        "--reproducible: each rank would round its sum over shards, so that bits would depend on the "
        "number of ranks; leave out either");
  if (options_.backend == Backend::cuda && options_.engine != launch::Engine::nccl)
    refuse_it(
        "--backend cuda without NCCL between the ranks: the host sums gradients in float32; leave "
        "it out, or use --engine nccl");
}

LOCKSTEP_INLINE void Combinations::check_bucket_cap() {
  if (!options_.bucket_cap_mb || options_.parallel == Parallel::ddp) return;
  refuse("--bucket-cap-mb", &Options::bucket_cap_mb, {},
         "--bucket-cap-mb " + shortest(*options_.bucket_cap_mb) + " with --parallel " + name(options_.parallel) +
             ": only ranks send gradients; use --parallel ddp, or leave it out");
}

LOCKSTEP_INLINE void Combinations::check_replica_checks() {
  if (options_.parallel != Parallel::single) return;
  refuse("--check-replicas-every", &Options::check_replicas_every, Index{0},
         "--check-replicas-every " + std::to_string(options_.check_replicas_every) +
             " with --parallel single: there is only one replica; use --parallel dp or ddp, or "
             "leave it out");
}

LOCKSTEP_INLINE void Combinations::note_wide_dp() {
  constexpr int few = 4;
  if (options_.parallel == Parallel::dp && options_.devices > few)
    options_.warnings.push_back("--parallel dp with " + std::to_string(options_.devices) +
                                " devices: the first device sums all gradients and makes all updates, which takes "
                                "longer with each device; --parallel ddp is faster beyond " +
                                std::to_string(few));
}

LOCKSTEP_INLINE void Combinations::check_autotune_gemm() {
  if (options_.backend != Backend::host) return;
  refuse("--timed-products", &Options::autotune_gemm, false,
         "--timed-products with --backend host: only cuBLASLt has several algorithms for a matrix product; leave it "
         "out, or use --backend cuda");
}

LOCKSTEP_INLINE void Combinations::check_shapes_ahead() {
  if (options_.backend != Backend::host) return;
  refuse("--shapes-ahead", &Options::shapes_ahead, Index{0},
         "--shapes-ahead " + std::to_string(options_.shapes_ahead) +
             " with --backend host: passes are only recorded on a GPU; leave it out, or use --backend cuda");
}

LOCKSTEP_INLINE void Combinations::check_attention_kernels() {
  auto const refuse_it = [&](std::string const& what) {
    refuse("--attention-kernels", &Options::attention_kernels, parallel::AttentionKernels::own,
           "--attention-kernels cudnn" + what);
  };
  if (options_.backend == Backend::host)
    refuse_it(" with --backend host: cuDNN computes on GPUs only; leave it out, or use --backend cuda");
  else if (!gpus_.cudnn)
    refuse_it(
        ": this program was built without cuDNN; link lockstep::cudnn, or leave it out to use Lockstep's own kernels");
}

LOCKSTEP_INLINE void Combinations::check_min_factor() {
  using Kind = optim::Schedule::Kind;
  if (options_.lr_schedule == Kind::cosine || options_.lr_schedule == Kind::linear) return;
  refuse("--lr-min-factor", &Options::lr_min_factor, 0.0,
         "--lr-min-factor with another --lr-schedule than cosine or linear: it would change nothing; give one of "
         "these, or leave it out");
}

LOCKSTEP_INLINE void Combinations::check_best() {
  if (options_.patience == 0 && options_.plateau == 0 && command_.given("--min-delta"))
    throw ConfigError("--min-delta without --patience or --lr-plateau: it would change nothing; add one of them");
  if (options_.plateau == 0 && command_.given("--lr-plateau-factor"))
    options_.warnings.push_back("--lr-plateau-factor without --lr-plateau changes nothing");
  if (options_.best_by == "none") options_.best_by.clear();
  if (!options_.save_dir.empty() || options_.patience > 0 || options_.plateau > 0) return;
  if (!options_.best_by.empty() && command_.given("--best-by"))  // a default may be for your own training loop
    throw ConfigError(
        "--best-by without --save-dir, --patience or --lr-plateau: it would change nothing; add one of them");
}

LOCKSTEP_INLINE void Combinations::check_data() {
  if (options_.data == "-")
    throw ConfigError(
        "--data -: every rank reads the data, and reads them again in each epoch, which the standard input does not "
        "allow; write them to a file");
}

LOCKSTEP_INLINE void Combinations::check_saving() {
  bool const resumes = options_.resume != Options::never && options_.resume != Options::automatic;
  if (resumes)
    refuse("--init-from", &Options::init_from, std::string(),
           "--resume with --init-from: a resumed run has its own parameters; leave out either");
  if (!options_.save_dir.empty()) return;
  refuse("--keep-checkpoints", &Options::keep_checkpoints, Index{0},
         "--keep-checkpoints without --save-dir: there are none to keep; name a directory");
  refuse("--trace", &Options::trace, false, "--trace without --save-dir: it writes files; name a directory for them");
  refuse("--checkpoint-every", &Options::checkpoint_every, Index{0},
         "--checkpoint-every without --save-dir: there is no place for checkpoints; name a directory");
  if (options_.resume == Options::automatic)
    refuse("--resume", &Options::resume, std::string(Options::never),
           "--resume auto without --save-dir: it looks for checkpoints there; name the run's directory");
}

LOCKSTEP_INLINE void Combinations::check_doctor() {
  if (!options_.doctor) {
    auto const needs = [](std::string const& flag) {
      return flag + " without --doctor: it is for the doctor's predictions; report takes it for a saved run";
    };
    refuse("--link", &Options::link, scaling::Link::automatic, needs("--link"));
    refuse("--alpha-us", &Options::alpha_us, std::optional<double>(), needs("--alpha-us"));
    refuse("--beta-gb-s", &Options::beta_gb_s, std::optional<double>(), needs("--beta-gb-s"));
    return;
  }
  refuse_training_flags("--doctor", "it measures, and neither trains nor saves");
  refuse("--shard-optimizer", &Options::shard_optimizer, false,
         "--doctor with --shard-optimizer: its predictions are for ranks that keep all of the optimizer's moments; "
         "leave out either");
}

LOCKSTEP_INLINE void Combinations::check_evaluate() {
  if (!options_.evaluate) return;
  if (options_.init_from.empty())
    throw ConfigError("--evaluate without --init-from: there is nothing to evaluate; name a .safetensors file");
  auto const what = "it evaluates, and neither trains nor saves";
  refuse_training_flags("--evaluate", what);
  refuse_flag("--evaluate", "--doctor", &Options::doctor, false, what);
  refuse_flag("--evaluate", "--save-dir", &Options::save_dir, std::string(), what);
  refuse_flag("--evaluate", "--shard-optimizer", &Options::shard_optimizer, false, what);
}

LOCKSTEP_INLINE void Combinations::refuse_training_flags(char const* instead, char const* what) {
  refuse_flag(instead, "--resume", &Options::resume, std::string(Options::never), what);
  refuse_flag(instead, "--checkpoint-every", &Options::checkpoint_every, Index{0}, what);
  refuse_flag(instead, "--keep-checkpoints", &Options::keep_checkpoints, Index{0}, what);
  refuse_flag(instead, "--trace", &Options::trace, false, what);
  refuse_flag(instead, "--max-restarts", &Options::max_restarts, 0, what);
  if (command_.given("--best-by")) refuse_flag(instead, "--best-by", &Options::best_by, std::string(), what);
  refuse_flag(instead, "--patience", &Options::patience, Index{0}, what);
  refuse_flag(instead, "--lr-plateau", &Options::plateau, Index{0}, what);
  refuse_flag(instead, "--timed-products", &Options::autotune_gemm, false, what);
  refuse_flag(instead, "--max-steps", &Options::max_steps, std::optional<Index>(), what);
  refuse_flag(instead, "--eval-every", &Options::eval_every, Index{0}, what);
  refuse_flag(instead, "--dry-run", &Options::dry_run, false, what);
}

}}}  // namespace lockstep::app::detail
