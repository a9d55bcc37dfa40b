// SPDX-License-Identifier: Apache-2.0
#include <lockstep/app/common_flags.hpp>

#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace lockstep;

namespace {

app::Options parse(std::vector<char const*> arguments, int cores = 4, launch::Environment const& place = {},
                   app::Gpus const& gpus = {}) {
  app::Options options;
  app::Command command;
  app::CommonFlags common(command, options);
  arguments.insert(arguments.begin(), "program");
  static_cast<void>(command.parse(static_cast<int>(arguments.size()), arguments.data()));
  common.resolve(cores, place, gpus);
  return options;
}

std::string refused(std::vector<char const*> arguments, launch::Environment const& place = {},
                    app::Gpus const& gpus = {}) {
  try {
    parse(std::move(arguments), 4, place, gpus);
  } catch (ConfigError const& error) {
    return error.what();
  }
  return "";
}

bool contains(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("flags that save files need --save-dir") {
  CHECK(parse({}).resume == app::Options::never);
  auto const options = parse({"--save-dir", "x", "--checkpoint-every", "50", "--resume", "auto"});
  CHECK(options.checkpoint_every == 50);
  CHECK(options.resume == app::Options::automatic);
  CHECK(parse({"--resume", "a/step_5.safetensors"}).resume == "a/step_5.safetensors");
  CHECK(contains(refused({"--checkpoint-every", "50"}), "--checkpoint-every without --save-dir"));
  CHECK(contains(refused({"--resume", "auto"}), "--resume auto without --save-dir"));
  CHECK(parse({"--save-dir", "x", "--keep-checkpoints", "2"}).keep_checkpoints == 2);
  CHECK(contains(refused({"--keep-checkpoints", "2"}), "--keep-checkpoints without --save-dir"));
  CHECK(contains(refused({"--trace"}), "--trace without --save-dir"));
  CHECK(parse({"--trace", "--save-dir", "x"}).trace);
  CHECK_FALSE(parse({"--save-dir", "x"}).trace);
}

TEST_CASE("the policy follows from ranks and devices, and can be chosen") {
  auto options = parse({});
  CHECK(options.parallel == app::Parallel::single);
  CHECK(options.shards() == 1);

  options = parse({"--devices", "3"});
  CHECK(options.parallel == app::Parallel::dp);
  CHECK(options.devices == 3);
  CHECK(options.ranks == 1);

  options = parse({"--nproc", "2"});
  CHECK(options.parallel == app::Parallel::ddp);
  CHECK(options.nproc == 2);
  CHECK(options.ranks == 2);
  CHECK(options.devices == 1);

  options = parse({"--multi-gpu", "ddp", "--devices", "3"});
  CHECK(options.parallel == app::Parallel::ddp);
  CHECK(options.nproc == 1);
  CHECK(options.ranks == 3);
  CHECK(options.devices == 1);

  CHECK(parse({"--parallel", "ddp"}).ranks == 1);
  CHECK(parse({"--parallel", "dp"}).devices == 2);
  CHECK(parse({"--parallel", "dp", "--devices", "1"}).devices == 1);
  CHECK(parse({"--nproc", "auto"}, 3).nproc == 3);
  CHECK(parse({"--nproc", "auto"}, 1).parallel == app::Parallel::single);
}

TEST_CASE("restarts without checkpoints cause a warning") {
  CHECK(parse({"--nproc", "2", "--max-restarts", "1", "--save-dir", "x", "--checkpoint-every", "5"}).warnings.empty());
  auto const warnings = parse({"--nproc", "2", "--max-restarts", "1"}).warnings;
  REQUIRE(warnings.size() == 1);
  CHECK(contains(warnings[0], "begin with the first step again"));
}

TEST_CASE("--max-steps determines the number of epochs, unless --epochs is given") {
  CHECK(parse({}).epochs == 3);
  CHECK(parse({"--max-steps", "50"}).epochs == 0);
  CHECK(parse({"--max-steps", "50", "--epochs", "2"}).epochs == 2);
  CHECK(parse({"--eval-every", "7"}).eval_every == 7);
  CHECK(contains(refused({"--doctor", "--eval-every", "7"}), "--doctor with --eval-every"));
}

TEST_CASE("impossible combinations are refused with a remedy") {
  CHECK(contains(refused({"--parallel", "single", "--nproc", "2"}), "--parallel single with --nproc 2"));
  CHECK(contains(refused({"--parallel", "dp", "--nproc", "2"}), "several ranks need --parallel ddp"));
  CHECK(contains(refused({"--parallel", "single", "--devices", "2"}), "several devices need --parallel dp or ddp"));
  CHECK(contains(refused({"--parallel", "ddp", "--devices", "2", "--nproc", "2"}), "one device in each rank"));
  CHECK(contains(refused({"--parallel", "ddp", "--devices", "0"}), "--devices 0: must be a whole number from 1"));
  CHECK(contains(refused({"--backend", "cuda"}), "built without CUDA"));
  CHECK(contains(refused({"--gpu-ids", "0,7"}), "--gpu-ids 0,7: there is no such GPU"));
  CHECK(contains(refused({"--base-batch-size", "32"}), "--lr-scaling"));
  CHECK(contains(refused({"--warmup-steps", "32", "--warmup-epochs", "1"}), "give one of them"));
  CHECK(contains(refused({"--batch-size", "32", "--global-batch-size", "64"}), "give one of them"));
}

TEST_CASE("values out of range are refused") {
  for (auto const& [flag, value] : std::vector<std::pair<char const*, char const*>>{{"--batch-size", "0"},
                                                                                    {"--batch-size", "-4"},
                                                                                    {"--lr", "nan"},
                                                                                    {"--lr", "quick"},
                                                                                    {"--lr", "-1"},
                                                                                    {"--epochs", "0"},
                                                                                    {"--max-steps", "0"},
                                                                                    {"--nproc", "0"},
                                                                                    {"--nproc", "all"},
                                                                                    {"--threads", "0"},
                                                                                    {"--num-workers", "-1"},
                                                                                    {"--prefetch", "-1"},
                                                                                    {"--bucket-cap-mb", "0"},
                                                                                    {"--grad-accum-steps", "0"},
                                                                                    {"--clip-norm", "-1"},
                                                                                    {"--seed", "-1"}}) {
    std::string const name = flag;  // clang does not capture structured bindings in a macro's lambda
    CAPTURE(name);
    CHECK(contains(refused({flag, value}), name + " " + value + ": must be a"));
  }
  CHECK(contains(refused({"--nproc", "all"}), ", or auto"));
  CHECK(contains(refused({"--parallel", "ddpp"}), "the nearest is ddp"));
  CHECK(contains(refused({"--lr-scaling", "square"}), "none, linear, sqrt"));
  CHECK(contains(refused({"--lr-schedule", "step"}), "constant, cosine, linear, inverse-sqrt"));
}

TEST_CASE("the global batch must divide exactly, or is refused with the nearest valid size") {
  auto const options = parse({"--nproc", "3", "--grad-accum-steps", "4", "--global-batch-size", "48"});
  CHECK(options.batch_size == 4);
  CHECK(options.effective_batch_size() == 48);
  auto const nearest = [](char const* global) {
    return refused({"--nproc", "3", "--grad-accum-steps", "4", "--global-batch-size", global});
  };
  CHECK(contains(nearest("50"), "multiple of 12"));
  CHECK(contains(nearest("50"), "nearest that fits is 48"));
  CHECK(contains(nearest("55"), "nearest that fits is 60"));
  CHECK(contains(nearest("1"), "nearest that fits is 12"));
}

TEST_CASE("a batch that no loader takes is refused before any rank starts") {
  CHECK(parse({"--nproc", "2", "--batch-size", "2147483647"}).shard_size() == 2147483647);
  CHECK(refused({"--nproc", "2", "--batch-size", "2147483648"}) ==
        "--batch-size 2147483648: a batch of each rank or device has 2147483648 samples, and may have at most "
        "2147483647; give fewer, and --grad-accum-steps for a larger step");
  CHECK(contains(refused({"--global-batch-size", "4294967296"}), "--global-batch-size 4294967296: a batch of each"));
  CHECK(parse({"--global-batch-size", "4294967296", "--grad-accum-steps", "4"}).batch_size == Index{1} << 30);
  CHECK(parse({"--reproducible", "4", "--batch-size", "4294967296"}).shard_size() == Index{1} << 30);
}

TEST_CASE("shards must fit ranks and batches, or are refused with the nearest valid number") {
  auto options = parse({"--reproducible", "8", "--nproc", "2", "--batch-size", "12"});
  CHECK(options.reproducible == 8);
  CHECK(options.shards() == 8);
  CHECK(options.shard_size() == 3);
  CHECK(options.effective_batch_size() == 24);
  options = parse({"--reproducible", "8", "--devices", "4", "--global-batch-size", "32", "--grad-accum-steps", "2"});
  CHECK(options.batch_size == 4);
  CHECK(options.shard_size() == 2);
  CHECK(contains(refused({"--reproducible", "8", "--nproc", "2", "--batch-size", "10"}),
                 "--batch-size 10: must be a multiple of 4 (8 shards of --reproducible on 2 ranks or devices); the "
                 "nearest that fits is 12"));
  CHECK(contains(refused({"--reproducible", "8", "--global-batch-size", "50", "--grad-accum-steps", "3"}),
                 "must be a multiple of 24 (8 shards x 3 accumulation steps); the nearest that fits is 48"));
  CHECK(contains(refused({"--reproducible", "6"}),
                 "--reproducible 6: the number of shards must be a power of two; the nearest is 4"));
  CHECK(contains(refused({"--reproducible", "8", "--nproc", "3"}),
                 "--reproducible 8: the number of ranks or devices, 3, must divide the number of shards; the nearest"));
  CHECK(contains(refused({"--reproducible", "2", "--parallel", "dp", "--devices", "4"}), "the nearest that does is 2"));
  CHECK(contains(refused({"--reproducible", "0"}), "--reproducible 0: must be a whole number from 1"));
  CHECK(contains(refused({"--reproducible", "4", "--lr-scaling", "linear"}), "give --base-batch-size"));
  CHECK(parse({"--reproducible", "4", "--lr-scaling", "linear", "--base-batch-size", "8"}).reproducible == 4);
  app::Gpus const two{.built = true, .count = 2, .joined = true};
  CHECK(parse({"--reproducible", "4", "--nproc", "2"}, 4, {}, two).engine == launch::Engine::process);
  CHECK(contains(refused({"--reproducible", "4", "--nproc", "2", "--engine", "nccl"}, {}, two),
                 "--reproducible 4 with --engine nccl"));
}

TEST_CASE("cores are divided among devices") {
  CHECK(parse({}, 8).threads == 8);
  CHECK(parse({"--devices", "2"}, 8).threads == 4);
  CHECK(parse({"--nproc", "3"}, 8).threads == 2);
  CHECK(parse({"--nproc", "8"}, 2).threads == 1);
  CHECK(parse({"--nproc", "2", "--threads", "7"}, 2).threads == 7);
}

TEST_CASE("scaling the learning rate up without warm-up causes a warning") {
  CHECK(parse({"--nproc", "2", "--lr-scaling", "linear"}).warnings.size() == 1);
  CHECK(parse({"--nproc", "2", "--lr-scaling", "linear", "--warmup-epochs", "1"}).warnings.empty());
  CHECK(parse({"--lr-scaling", "linear"}).warnings.empty());
  CHECK(parse({"--nproc", "2"}).warnings.empty());
}

TEST_CASE("a launcher's ranks are used as they are") {
  launch::Environment const place{launch::Launcher::torchrun, 1, 4, 1, 2, 0, "RANK=1, WORLD_SIZE=4"};
  auto const options = parse({"--local-rank", "1"}, 6, place);
  CHECK(options.parallel == app::Parallel::ddp);
  CHECK(options.ranks == 4);
  CHECK(options.nproc == 1);
  CHECK(options.threads == 3);  // two ranks on this host
  CHECK(parse({"--global-batch-size", "64"}, 6, place).batch_size == 16);
  CHECK(contains(refused({"--nproc", "2"}, place), "--nproc under torchrun (RANK=1, WORLD_SIZE=4)"));
  CHECK(contains(refused({"--parallel", "single"}, place), "--parallel single with 4 ranks of torchrun"));
  CHECK(contains(refused({"--parallel", "ddp", "--devices", "2"}, place), "one device in each rank"));
  CHECK(contains(refused({"--local_rank=0"}, place), "--local-rank 0 and torchrun (RANK=1, WORLD_SIZE=4) disagree"));
  CHECK(parse({"--local-rank=0"}).ranks == 1);
  CHECK(contains(refused({"--local-rank=3"}), "no launcher's variables"));
  launch::Environment const one{launch::Launcher::slurm, 0, 1, 0, 1, 0, "SLURM_STEP_NUM_TASKS=1"};
  CHECK(parse({"--nproc", "3", "--max-restarts", "2"}, 4, one).nproc == 3);  // in the one task of a step
  CHECK(contains(refused({"--max-restarts", "2"}), "--max-restarts without --nproc"));
  CHECK(contains(refused({"--engine", "mpi"}),
                 "--engine mpi: this program was built without MPI; configure its build with LOCKSTEP_MPI=ON"));
}

TEST_CASE("NCCL connects ranks with one GPU each, unless --engine says otherwise") {
  using launch::Engine;
  app::Gpus const two{.built = true, .count = 2, .joined = true}, apart{.built = true, .count = 2, .joined = false};
  auto const engine = [](std::vector<char const*> arguments, app::Gpus const& gpus, launch::Environment place = {}) {
    return parse(std::move(arguments), 4, place, gpus).engine;
  };
  CHECK(engine({"--nproc", "2"}, two) == Engine::nccl);
  CHECK(engine({"--parallel", "ddp", "--devices", "2"}, two) == Engine::process);  // threads by default
  CHECK(engine({"--parallel", "ddp", "--devices", "2", "--engine", "nccl"}, two) == Engine::nccl);
  CHECK(engine({"--nproc", "3"}, two) == Engine::process);  // NCCL would refuse the third
  CHECK(engine({"--nproc", "3", "--engine", "nccl"}, two) == Engine::nccl);
  CHECK(engine({"--nproc", "2", "--engine", "process"}, two) == Engine::process);
  CHECK(engine({"--nproc", "2"}, apart) == Engine::process);
  CHECK(engine({"--nproc", "2", "--backend", "host"}, two) == Engine::process);
  CHECK(engine({}, two) == Engine::process);
  launch::Environment const spread{launch::Launcher::slurm, 1, 6, 1, 3, 0,
                                   "SLURM_PROCID=1"};  // each may see only one GPU
  CHECK(engine({}, two, spread) == Engine::nccl);
  CHECK(engine({"--backend", "host"}, two, spread) == Engine::process);
  CHECK(parse({"--engine", "nccl"}, 4, {}, two).parallel == app::Parallel::ddp);

  CHECK(contains(refused({"--engine", "nccl"}, {}, {}), "NCCL joins GPUs"));
  CHECK(parse({"--master-addr", "n1", "--master-port", "7"}).master_address == "n1");
  CHECK(parse({"--require-secret"}).launch_options.require_secret);
  CHECK(contains(refused({"--host-timeout", "1"}), "--host-timeout 1: must be a number from 2 to 3600"));
  CHECK(contains(refused({"--engine", "nccl"}, {}, apart), "built without NCCL"));
  CHECK(contains(refused({"--engine", "nccl", "--parallel", "dp"}, {}, two), "--parallel dp: only ranks are joined"));
}

TEST_CASE("models run on available GPUs, unless --backend chooses") {
  app::Gpus const four{.built = true, .count = 4}, none{.built = true, .count = 0, .why = "no driver"};
  auto const on = [](std::vector<char const*> arguments, app::Gpus const& gpus) {
    return parse(std::move(arguments), 4, {}, gpus);
  };
  CHECK(on({}, four).backend == app::Backend::cuda);
  CHECK(on({}, four).devices == 1);
  CHECK(on({}, four).gpus == std::vector{0, 1, 2, 3});
  CHECK(on({}, {}).gpus.empty());
  CHECK(on({}, none).backend == app::Backend::host);
  CHECK(on({}, {}).backend == app::Backend::host);
  CHECK(on({"--backend", "host"}, four).backend == app::Backend::host);
  CHECK(contains(refused({"--backend", "cuda"}, {}, none), "no GPU to use (no driver)"));

  CHECK(on({"--nproc", "auto", "--gpu-ids", "1,3"}, four).nproc == 2);  // cores: 4
  CHECK(on({"--parallel", "dp"}, four).devices == 4);
  auto options = on({"--gpu-ids", "3,1"}, four);
  CHECK(options.parallel == app::Parallel::dp);
  CHECK(options.devices == 2);
  CHECK(options.gpus == std::vector{3, 1});
  options = on({"--gpu-ids", "3,1", "--parallel", "ddp"}, four);
  CHECK(options.ranks == 2);
  CHECK(options.devices == 1);
  CHECK(on({"--gpu-ids", "2"}, four).parallel == app::Parallel::single);
  CHECK(on({"--gpu-ids", "3,1", "--devices", "4"}, four).devices == 4);
  options = on({"--gpu-ids", "0,1", "--nproc", "4"}, four);
  CHECK(options.ranks == 4);
  CHECK(options.gpus.size() == 2);

  CHECK(contains(refused({"--gpu-ids", "0,4"}, {}, four), "there is no GPU 4; this process sees 4"));
  CHECK(contains(refused({"--gpu-ids", "0,"}, {}, four), "--gpu-ids"));
  CHECK(contains(refused({"--gpu-ids", "0,x"}, {}, four), "--gpu-ids"));
  CHECK(contains(refused({"--gpu-ids", "0", "--backend", "host"}, {}, four), "leave out either"));
  CHECK(contains(refused({"--gpu-ids", "0,1", "--parallel", "single"}, {}, four), "--gpu-ids 0,1"));
}

TEST_CASE("the best evaluation is neither kept nor awaited without a flag") {
  CHECK(contains(refused({"--best-by", "accuracy"}), "--best-by without --save-dir, --patience or --lr-plateau"));
  CHECK(parse({"--best-by", "accuracy", "--patience", "3"}).patience == 3);
  CHECK(parse({"--best-by", "accuracy", "--save-dir", "runs"}).best_by == "accuracy");
  CHECK(parse({"--best-by", "none"}).best_by.empty());
}

TEST_CASE("a program's default of --best-by applies to runs that can use it, and affects no others") {
  auto const best_by = [](std::vector<char const*> arguments) {
    app::Options options;
    options.best_by = "error_rate";
    app::Command command;
    app::CommonFlags common(command, options);
    arguments.insert(arguments.begin(), "trainer");
    static_cast<void>(command.parse(static_cast<int>(arguments.size()), arguments.data()));
    common.resolve(4);
    return options.best_by;
  };
  CHECK(best_by({}) == "error_rate");
  CHECK(best_by({"--doctor"}) == "error_rate");
  CHECK(best_by({"--best-by", "none", "--save-dir", "runs"}).empty());
  CHECK_THROWS_WITH_AS(best_by({"--best-by", "loss"}), doctest::Contains("--best-by without --save-dir"), ConfigError);
}

TEST_CASE("inapplicable program defaults are ignored; inapplicable given flags are refused") {
  struct Own : app::Options {
    Own() {
      patience = 3, plateau = 2, eval_every = 7;
      checkpoint_every = 8, keep_checkpoints = 2, trace = true, resume = automatic;
      check_replicas_every = 4, shard_optimizer = true, bucket_cap_mb = 2;
      gradient_wire = parallel::WireFormat::bfloat16;
      clip_norm = 1, lr_min_factor = 0.1;
      lr_schedule = optim::Schedule::Kind::linear;
      init_from = "pretrained";
    }
  };
  std::string help;
  auto const parsed = [&](std::vector<char const*> arguments) {
    Own options;
    app::Command command;
    app::CommonFlags common(command, options);
    help = command.help();
    arguments.insert(arguments.begin(), "trainer");
    static_cast<void>(command.parse(static_cast<int>(arguments.size()), arguments.data()));
    common.resolve(4);
    return options;
  };
  auto const bare = parsed({});
  CHECK(bare.patience == 3);
  CHECK(bare.checkpoint_every + bare.keep_checkpoints + bare.check_replicas_every == 0);
  CHECK_FALSE((bare.trace || bare.shard_optimizer || bare.bucket_cap_mb));
  CHECK(bare.resume == app::Options::never);
  CHECK(bare.gradient_wire == parallel::WireFormat::float32);
  auto const doctor = parsed({"--doctor", "--save-dir", "x", "--nproc", "2"});
  CHECK(doctor.patience + doctor.plateau + doctor.eval_every + doctor.checkpoint_every == 0);
  CHECK(doctor.gradient_wire == parallel::WireFormat::bfloat16);
  auto const whole = parsed({"--save-dir", "x", "--nproc", "2"});
  CHECK(whole.checkpoint_every == 8);
  CHECK((whole.trace && whole.shard_optimizer && whole.resume == app::Options::automatic));
  CHECK(whole.init_from == "pretrained");
  CHECK(parsed({"--save-dir", "x", "--resume", "b"}).init_from.empty());
  CHECK(parsed({"--clip-norm", "0"}).clip_norm == 0);
  CHECK(bare.lr_min_factor == 0.1);
  CHECK(parsed({"--lr-schedule", "constant"}).lr_min_factor == 0);
  for (auto const* flag : {"--patience", "--checkpoint-every", "--check-replicas-every"})
    CHECK_THROWS_WITH_AS(parsed({"--doctor", flag, "5"}), doctest::Contains(flag), ConfigError);
  for (auto const* part :
       {"inverse-sqrt; default linear)", "default auto)", "default 1)", "(none, linear, sqrt; default none)"})
    CHECK(contains(help, part));
}

TEST_CASE("one command starts a run from saved parameters and resumes it") {
  CHECK(parse({"--init-from", "a", "--save-dir", "x", "--resume", "auto"}).init_from == "a");
  CHECK(contains(refused({"--init-from", "a", "--resume", "b"}), "--resume with --init-from"));
}

TEST_CASE("only ranks can shard the optimizer state, also on GPUs") {
  CHECK_FALSE(parse({"--nproc", "2"}).shard_optimizer);
  CHECK(parse({"--nproc", "2", "--shard-optimizer"}).shard_optimizer);
  CHECK(parse({"--parallel", "ddp", "--devices", "2", "--shard-optimizer"}).shard_optimizer);
  CHECK(contains(refused({"--shard-optimizer"}), "--shard-optimizer with --parallel single: only ranks share"));
  CHECK(contains(refused({"--shard-optimizer", "--devices", "2"}), "--shard-optimizer with --parallel dp"));
  CHECK(contains(refused({"--shard-optimizer", "--nproc", "2", "--doctor"}), "--doctor with --shard-optimizer"));
  app::Gpus const two{.built = true, .count = 2, .joined = true};
  for (auto const* engine : {"nccl", "process"})
    CHECK(parse({"--shard-optimizer", "--nproc", "2", "--engine", engine}, 4, {}, two).shard_optimizer);
}

TEST_CASE("only ranks can send gradients in 16 bits") {
  using parallel::WireFormat;
  CHECK(parse({"--nproc", "2"}).gradient_wire == WireFormat::float32);
  CHECK(parse({"--nproc", "2", "--gradient-wire", "bf16"}).gradient_wire == WireFormat::bfloat16);
  CHECK(parse({"--nproc", "2", "--gradient-wire", "fp16"}).gradient_wire == WireFormat::float16);
  CHECK(parse({"--nproc", "2", "--gradient-wire", "bf16", "--doctor"}).doctor);
  CHECK(parse({"--gradient-wire", "fp32"}).gradient_wire == WireFormat::float32);
  CHECK(contains(refused({"--gradient-wire", "half"}), "fp32, bf16, fp16"));
  CHECK(contains(refused({"--gradient-wire", "bf16"}),
                 "--gradient-wire bf16 with --parallel single: only ranks send gradients; use --parallel ddp"));
  CHECK(contains(refused({"--gradient-wire", "bf16", "--devices", "2"}), "--gradient-wire bf16 with --parallel dp"));
  CHECK(contains(refused({"--gradient-wire", "bf16", "--nproc", "2", "--reproducible", "2"}),
                 "--gradient-wire bf16 with --reproducible: each rank would round"));
  app::Gpus const two{.built = true, .count = 2, .joined = true}, apart{.built = true, .count = 2, .joined = false};
  CHECK(parse({"--gradient-wire", "bf16", "--nproc", "2"}, 4, {}, two).engine == launch::Engine::nccl);
  CHECK(contains(refused({"--gradient-wire", "bf16", "--nproc", "2"}, {}, apart),
                 "--gradient-wire bf16 with --backend cuda without NCCL between the ranks"));
}

TEST_CASE("only ranks have buckets, and only several replicas are compared") {
  CHECK(parse({"--nproc", "2", "--bucket-cap-mb", "4"}).bucket_cap_mb == 4);
  CHECK(contains(refused({"--bucket-cap-mb", "4"}),
                 "--bucket-cap-mb 4 with --parallel single: only ranks send gradients; use --parallel ddp, or"));
  CHECK(contains(refused({"--bucket-cap-mb", "0.5", "--devices", "2"}), "--bucket-cap-mb 0.5 with --parallel dp"));
  CHECK(parse({"--nproc", "2", "--check-replicas-every", "10"}).check_replicas_every == 10);
  CHECK(parse({"--devices", "2", "--check-replicas-every", "10"}).check_replicas_every == 10);
  CHECK(contains(refused({"--check-replicas-every", "10"}),
                 "--check-replicas-every 10 with --parallel single: there is only one replica; "
                 "use --parallel dp or ddp, or leave it out"));
}

TEST_CASE("only cosine and linear schedules have an end") {
  CHECK(parse({"--lr-min-factor", "0.1"}).lr_min_factor == 0.1);  // for the default schedule, cosine
  CHECK(parse({"--lr-schedule", "linear", "--lr-min-factor", "0.1"}).lr_min_factor == 0.1);
  CHECK(contains(refused({"--lr-schedule", "constant", "--lr-min-factor", "0.1"}),
                 "--lr-min-factor with another --lr-schedule than cosine or linear: it would change nothing"));
  CHECK(contains(refused({"--lr-schedule", "inverse-sqrt", "--lr-min-factor", "0.1"}), "leave it out"));
}

TEST_CASE("GEMMs are timed only on GPUs") {
  app::Gpus const one{.built = true, .count = 1};
  CHECK_FALSE(parse({}, 4, {}, one).autotune_gemm);
  CHECK(parse({"--timed-products"}, 4, {}, one).autotune_gemm);
  CHECK(contains(refused({"--timed-products"}),
                 "--timed-products with --backend host: only cuBLASLt has several algorithms"));
  CHECK(contains(refused({"--timed-products", "--backend", "host"}, {}, one), "or use --backend cuda"));
  CHECK(contains(refused({"--timed-products", "--doctor"}, {}, one), "--doctor with --timed-products"));
}

TEST_CASE("shapes of batches are made ahead only on GPUs") {
  app::Gpus const one{.built = true, .count = 1};
  CHECK(parse({}, 4, {}, one).shapes_ahead == 16);
  CHECK(parse({"--shapes-ahead", "3"}, 4, {}, one).shapes_ahead == 3);
  CHECK(parse({}).shapes_ahead == 0);
  CHECK(contains(refused({"--shapes-ahead", "3"}), "--shapes-ahead 3 with --backend host: passes are only recorded"));
}

TEST_CASE("cuDNN computes attention only on GPUs, in programs that are linked with it") {
  using parallel::AttentionKernels;
  app::Gpus const one{.built = true, .count = 1, .cudnn = true}, without{.built = true, .count = 1};
  CHECK(parse({}, 4, {}, one).attention_kernels == AttentionKernels::own);
  CHECK(parse({"--attention-kernels", "own"}).attention_kernels == AttentionKernels::own);
  CHECK(parse({"--attention-kernels", "own"}, 4, {}, without).attention_kernels == AttentionKernels::own);
  CHECK(parse({"--attention-kernels", "cudnn"}, 4, {}, one).attention_kernels == AttentionKernels::cudnn);
  CHECK(contains(refused({"--attention-kernels", "cudnn"}),
                 "--attention-kernels cudnn with --backend host: cuDNN computes on GPUs only; leave it out, or use "
                 "--backend cuda"));
  CHECK(contains(refused({"--attention-kernels", "cudnn", "--backend", "host"}, {}, one), "with --backend host"));
  CHECK(contains(refused({"--attention-kernels", "cudnn"}, {}, without),
                 "--attention-kernels cudnn: this program was built without cuDNN; link lockstep::cudnn, or leave it "
                 "out"));
  CHECK(contains(refused({"--attention-kernels", "flash"}, {}, one), "--attention-kernels"));
}

TEST_CASE("a program's default of cuDNN for attention applies where cuDNN does") {
  using parallel::AttentionKernels;
  auto const resolved = [](app::Gpus const& gpus) {
    app::Options options;
    options.attention_kernels = AttentionKernels::cudnn;
    app::Command command;
    app::CommonFlags common(command, options);
    char const* const arguments[] = {"trainer"};
    REQUIRE(command.parse(1, arguments));
    common.resolve(4, {}, gpus);
    return options.attention_kernels;
  };
  CHECK(resolved({.built = true, .count = 1, .cudnn = true}) == AttentionKernels::cudnn);
  CHECK(resolved({.built = true, .count = 1}) == AttentionKernels::own);
  CHECK(resolved({}) == AttentionKernels::own);
}

TEST_CASE("--evaluate needs parameters, and refuses flags of training and saving") {
  CHECK(parse({"--evaluate", "--init-from", "a.safetensors"}).evaluate);
  CHECK_FALSE(parse({"--init-from", "a.safetensors"}).evaluate);
  auto const with = [&](std::vector<char const*> flags) {
    flags.insert(flags.begin(), {"--evaluate", "--init-from", "a.safetensors"});
    return refused(flags);
  };
  CHECK(contains(refused({"--evaluate"}), "--evaluate without --init-from: there is nothing to evaluate"));
  CHECK(
      contains(with({"--save-dir", "runs"}), "--evaluate with --save-dir: it evaluates, and neither trains nor saves"));
  CHECK(contains(with({"--doctor"}), "--evaluate with --doctor"));
  CHECK(contains(with({"--dry-run"}), "--evaluate with --dry-run"));
  CHECK(contains(with({"--max-steps", "5"}), "--evaluate with --max-steps"));
  CHECK(contains(with({"--patience", "2"}), "--evaluate with --patience"));
}

TEST_CASE("the link between ranks applies only to the doctor's predictions") {
  auto const given = parse({"--doctor", "--link", "nvlink_4", "--alpha-us", "3"});
  CHECK(given.link == scaling::Link::nvlink_4);
  CHECK(given.alpha_us == 3);
  CHECK_FALSE(given.beta_gb_s);
  CHECK(contains(refused({"--link", "pcie_5"}), "--link without --doctor"));
  CHECK(contains(refused({"--beta-gb-s", "20"}), "--beta-gb-s without --doctor"));
  CHECK(contains(refused({"--alpha-us", "20"}), "--alpha-us without --doctor"));
}

TEST_CASE("--doctor refuses flags that only a saved run uses") {
  CHECK(parse({"--doctor", "--save-dir", "runs"}).doctor);
  CHECK_FALSE(parse({}).doctor);
  CHECK(contains(refused({"--doctor", "--resume", "auto", "--save-dir", "runs"}), "--doctor with --resume"));
  CHECK(contains(refused({"--doctor", "--dry-run"}), "--doctor with --dry-run"));
  CHECK(contains(refused({"--doctor", "--checkpoint-every", "5", "--save-dir", "runs"}), "--checkpoint-every"));
  CHECK(contains(refused({"--doctor", "--keep-checkpoints", "5", "--save-dir", "runs"}), "--keep-checkpoints"));
  CHECK(contains(refused({"--doctor", "--trace", "--save-dir", "runs"}), "--doctor with --trace"));
  CHECK(contains(refused({"--doctor", "--max-restarts", "1", "--nproc", "2"}), "--doctor with --max-restarts"));
  CHECK(contains(refused({"--doctor", "--best-by", "loss", "--patience", "2"}), "--doctor with --best-by"));
  CHECK(contains(refused({"--doctor", "--patience", "2"}), "--doctor with --patience"));
  CHECK(contains(refused({"--doctor", "--lr-plateau", "2"}), "--doctor with --lr-plateau"));
  CHECK(contains(refused({"--doctor", "--max-steps", "2"}), "--doctor with --max-steps"));
}

TEST_CASE("prefetch may be given per worker, as in other trainers") {
  auto const options = parse({"--num_workers", "4", "--prefetch_factor", "2"});
  CHECK(options.prefetch == 8);
  REQUIRE(options.warnings.size() == 1);
  CHECK(options.warnings[0] == "--prefetch-factor 2 with 4 --num-workers is --prefetch 8");
  CHECK(parse({"--prefetch-factor", "3", "--num-workers", "0"}).prefetch == 3);
  CHECK(contains(refused({"--prefetch-factor", "3", "--prefetch", "2"}), "--prefetch with --prefetch-factor"));
  CHECK(contains(refused({"--prefetch-factor", "600", "--num-workers", "2"}), "must be at most 1024"));
}

TEST_CASE("synonyms are accepted, and fixed settings are noted at the start") {
  auto const options = parse({"--max_grad_norm=1", "--output-dir", "runs/x", "--gradient_accumulation_steps", "4",
                              "--per_device_train_batch_size", "8", "--learning_rate", "0.01", "--pin_memory"});
  CHECK(options.clip_norm == 1);
  CHECK(options.save_dir == "runs/x");
  CHECK(options.grad_accum_steps == 4);
  CHECK(options.batch_size == 8);
  CHECK(options.learning_rate == 0.01);
  CHECK(options.warnings == std::vector<std::string>{"pin_memory: always on, accepted"});
  CHECK(contains(refused({"--dist_backend", "smoke"}), "must be one of nccl, gloo, mpi"));
}

TEST_CASE("dp on more than four devices causes a warning") {
  CHECK(parse({"--parallel", "dp", "--devices", "4"}).warnings.empty());
  CHECK(parse({"--parallel", "ddp", "--devices", "8"}).warnings.empty());
  auto const warnings = parse({"--parallel", "dp", "--devices", "5"}).warnings;
  REQUIRE(warnings.size() == 1);
  CHECK(contains(warnings[0], "--parallel dp with 5 devices: the first device sums all gradients"));
}

TEST_CASE("idle GPUs are reported, unless GPUs are chosen by number") {
  app::Gpus const four{.built = true, .count = 4, .joined = true};
  auto const warnings = parse({}, 4, {}, four).warnings;
  REQUIRE(warnings.size() == 1);
  CHECK(contains(warnings[0], "1 of 4 GPUs is used; --parallel ddp --nproc auto uses all"));
  CHECK(parse({"--gpu-ids", "2"}, 4, {}, four).warnings.empty());
  CHECK(parse({"--nproc", "auto"}, 4, {}, four).warnings.empty());
  CHECK(parse({"--backend", "host"}, 4, {}, four).warnings.empty());
}

TEST_CASE("unreadable samples are an error unless a flag skips or replaces them") {
  CHECK(parse({}).on_failure == data::OnFailure::raise);
  CHECK(parse({"--on-failure", "skip"}).on_failure == data::OnFailure::skip);
  CHECK(parse({"--on-failure", "substitute"}).on_failure == data::OnFailure::substitute);
  CHECK(contains(refused({"--on-failure", "ignore"}), "--on-failure ignore: must be one of raise, skip, substitute"));
}
