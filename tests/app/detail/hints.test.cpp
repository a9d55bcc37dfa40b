// SPDX-License-Identifier: Apache-2.0
#include <lockstep/app/detail/hints.hpp>

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

#include <doctest/doctest.h>

using namespace lockstep;

namespace {

std::string on_gpus(int gpus, int ranks, int devices, launch::Environment const& place = {}) {
  app::Options options;
  options.backend = app::Backend::cuda;
  for (int i = 0; i < gpus; ++i) options.gpus.push_back(i);
  options.ranks = ranks;
  options.devices = devices;
  return app::detail::note_on_gpus(options, place);
}

}  // namespace

TEST_CASE("idle and shared GPUs are reported") {
  CHECK(on_gpus(1, 1, 1).empty());
  CHECK(on_gpus(4, 4, 1).empty());
  CHECK(on_gpus(4, 1, 4).empty());
  CHECK(on_gpus(4, 1, 1) == "1 of 4 GPUs is used; --parallel ddp --nproc auto uses all, and --gpu-ids chooses");
  CHECK(on_gpus(4, 1, 2).starts_with("2 of 4 GPUs are used; "));
  CHECK(on_gpus(1, 4, 1).starts_with("4 ranks or devices share 1 GPU, which is slower than one GPU each; "));
  launch::Environment const place{launch::Launcher::slurm, 1, 4, 1, 4, 0, "SLURM_PROCID=1"};
  CHECK(on_gpus(1, 4, 1, place).empty());
  launch::Environment const ours{launch::Launcher::lockstep, 1, 2, 1, 2, 0, {}};
  CHECK(on_gpus(4, 2, 1, ours).starts_with("2 of 4 GPUs are used; "));
  CHECK(app::detail::note_on_gpus({}, {}).empty());
}

TEST_CASE("many more training threads than processors are reported, on the CPU only") {
  app::Options options;
  options.cores = 2;
  options.devices = 2;
  options.threads = 4;
  CHECK(app::detail::note_on_shared_processors(options, 1).empty());
  CHECK(app::detail::note_on_shared_processors(options, 8)
            .starts_with("64 training threads share 2 processors and take turns; fewer ranks"));
  options.backend = app::Backend::cuda;
  CHECK(app::detail::note_on_shared_processors(options, 8).empty());
}

TEST_CASE("a slow start is reported, and a fast one is not") {
  CHECK(app::detail::note_on_slow_start(9.9).empty());
  CHECK(app::detail::note_on_slow_start(23.4).starts_with("this rank took 23 s to open its data"));
}

TEST_CASE("out-of-memory errors are reported with remedies, and other errors unchanged") {
  CHECK(app::detail::message_of(std::runtime_error("why")) == "why");
  std::filesystem::filesystem_error const denied("status", "/data/test.csv",
                                                 std::make_error_code(std::errc::permission_denied));
  CHECK(app::detail::message_of(denied) == "/data/test.csv: Permission denied; check the path and its permissions");
  auto const text = app::detail::message_of(std::bad_alloc());
  CHECK(text.starts_with("out of memory: the host, or a limit such as ulimit -v, refused memory ("));
  CHECK(text.find(" in all); a smaller --batch-size") != text.npos);
  CHECK(app::detail::message_of(memory::OutOfMemory(std::size_t{3} << 30)).find(" refused 3.0 GiB (") != text.npos);
  auto const fails = [] { app::detail::with_memory_message([] { throw std::bad_alloc(); }); };
  CHECK_THROWS_WITH_AS(fails(), doctest::Contains("--grad-accum-steps"), Error);
  CHECK(app::detail::with_memory_message([] { return 7; }) == 7);
}

TEST_CASE("attention that cuDNN was to compute, and did not, is reported with the reason") {
  using app::detail::note_on_attention;
  CHECK(note_on_attention({}).empty());
  CHECK(note_on_attention({.attention_kernels = "own"}).empty());
  CHECK(note_on_attention({.attention_kernels = "cudnn", .attention_by_cudnn = 3}).empty());
  CHECK(note_on_attention({.attention_kernels = "cudnn"}) ==
        "cuDNN computed no attention, because the model has none in 16 bits");
  CHECK(
      note_on_attention({.attention_kernels = "cudnn",
                         .attention_by_cudnn = 4,
                         .attention_not_by_cudnn = 2,
                         .attention_reason = "the layout is ragged"}) ==
      "cuDNN did not compute 2 of the 6 passes of attention that were queued or recorded, but Lockstep's kernels did: "
      "the layout is ragged");
}

TEST_CASE("a killed rank may have run out of memory") {
  CHECK(
      app::detail::with_memory_hint("rank 1 (pid 3) was killed by signal 9 (Killed)") ==
      "rank 1 (pid 3) was killed by signal 9 (Killed); the kernel does that when memory runs out, which dmesg reports");
  CHECK(app::detail::with_memory_hint("rank 1 (pid 3) was killed by signal 15 (Terminated)").ends_with("(Terminated)"));
}

TEST_CASE("a quota that allows fewer processors is reported") {
  CHECK(app::detail::note_on_quota({}, 8).empty());
  CHECK(app::detail::note_on_quota(8, 8).empty());
  CHECK(app::detail::note_on_quota(2, 8).starts_with(
      "a quota of the control group (container) gives this run 2 of 8 processors; "));
}

TEST_CASE("output that is lost is reported, unless its reader has ended") {
  auto const note_after_writing = [](std::FILE* out) {
    std::fputs("accuracy 0.9", out);
    auto note = app::detail::note_on_lost_output(out);
    std::fclose(out);
    return note;
  };
  CHECK(note_after_writing(std::fopen("/dev/null", "w")).empty());
  CHECK(note_after_writing(std::fopen("/dev/full", "w")).find("could not be written and is lost") != std::string::npos);
  auto* const before = ::signal(SIGPIPE, SIG_IGN);
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  ::close(ends[0]);
  CHECK(note_after_writing(::fdopen(ends[1], "w")).empty());
  ::signal(SIGPIPE, before);
}
