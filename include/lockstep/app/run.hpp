// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <limits>
#include <sstream>
#include <string>
#include <thread>

#include <lockstep/app/backend.hpp>
#include <lockstep/app/check_samples.hpp>
#include <lockstep/app/command.hpp>
#include <lockstep/app/common_flags.hpp>
#include <lockstep/app/detail/given_flags.hpp>
#include <lockstep/app/detail/hints.hpp>
#include <lockstep/app/detail/mpi.hpp>
#include <lockstep/app/precision.hpp>
#include <lockstep/app/save_dir.hpp>
#include <lockstep/app/training.hpp>
#include <lockstep/core/processors.hpp>
#include <lockstep/launch/environment/environment.hpp>
#include <lockstep/launch/run/run.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app {
namespace detail {

/// Prints one line on stderr; control characters become spaces.
void print_error(std::string const& program, std::string sentence);

std::string host_name();

/// Returns `Options::about`, what a program says of itself and of its data at the top of --help, if it has one.
template <class Options>
std::string about() {
  if constexpr (requires { std::string(Options::about); }) return std::string(Options::about) + "\n";
  return "";
}

/// Gives --seed, and flags after the first `known`, that are not given the values of the run that saved --init-from.
void adopt_saved_flags(Command& command, Options& options, std::size_t known);

/// Returns how to start the ranks that the options ask for.
launch::Options launch_options(Options const& options, launch::Environment const& place);

}  // namespace detail

/// Implements a trainer's main. Reads the command line into `Options` (app::Options or a struct derived from it). Lets
/// check(options) check the input, creates --save-dir, and calls train_rank(training) once per rank.
/// The starting process makes all checks before any rank starts; under another launcher, rank 0 makes them. An error is
/// one sentence on stderr for all ranks. Errors that may differ between hosts, as in a configuration file or of GPUs,
/// are one sentence per affected host.
/// prepare(options) does slow work that the ranks of a host share, such as a cache. Under another launcher, all ranks
/// except rank zero call it before ranks connect. Rank zero calls `check`, which should prepare the same data.
/// A run with --save-dir saves and stops on the signals of launch::StopRequest::stop_signals. The run continues without
/// output if the reader of its output exits, as in `| head`.
/// @returns the program's exit code: 0; 2 for invalid input; 1 for an error in training; 128 + signal for a rank that
/// was killed or a run that was stopped
template <class Options>
[[gnu::cold]] int run(int argc, char** argv, void (*check)(Options const&), int (*train_rank)(Training<Options>&),
                      void (*prepare)(Options const&) = nullptr) {
  auto const program = std::filesystem::path(argc > 0 ? argv[0] : "").filename().string();
  auto const say = [&program](std::string const& sentence) { detail::print_error(program, sentence); };
  bool prints = true;  // of the processes of a launcher, one prints what is equal in all
  std::string who;     // set if it is not the first process
  SaveDirLock held;
  for (int const signal : {SIGPIPE, SIGXFSZ}) ::signal(signal, SIG_IGN);  // a write then fails with an error code
  try {
    auto const place = launch::detect();
    prints = place.rank == 0;
    Options options;
    Command command(detail::about<Options>());
    CommonFlags common(command, options);
    command.group("Optimization");
    auto const saved_flags = command.size();
    if constexpr (requires { options.precision; })
      command.add(
          "--precision", options.precision,
          {{"fp32", Precision::fp32}, {"tf32", Precision::tf32}, {"bf16", Precision::bf16}, {"fp16", Precision::fp16}},
          "Number format of stored activations; tf32: fp32 with matrix products in TF32, on GPUs");
    auto const common_flags = command.size();
    command.group("Model and data of this trainer");
    if constexpr (requires { options.flags(command); }) options.flags(command);
    if (!command.parse_arguments(argc, argv)) {
      if (prints) std::fputs(command.help().c_str(), stdout);
      return 0;
    }
    prints = place.local_rank == 0;  // other hosts have other files and GPUs
    if (place.rank != 0) who = "rank " + std::to_string(place.rank) + " on " + detail::host_name() + ": ";
    command.read_config();
    if (options.evaluate) detail::adopt_saved_flags(command, options, saved_flags);
    auto const gpus = Gpus::detect();
    common.resolve_place(place, gpus);
    if (!command.has_config()) prints = place.rank == 0;
    common.resolve_rest(launch::cores_of_ranks(place), place, gpus);
    if constexpr (requires { options.precision; }) {
      check_backend(options.backend, options.precision);
      check_wire(options.gradient_wire, options.precision);
      if (command.given("--attention-kernels")) check_attention(options.attention_kernels, options.precision);
    } else {
      check_wire(options.gradient_wire, Precision::fp32);
    }
    options.program = program;
    options.equal_on_all_ranks = command.values(common_flags);
    options.saved_flags = "--seed=" + std::to_string(options.seed) + "\n" + command.lines(saved_flags);
    options.settings = command.settings();
    options.text_flags = command.text_flags();
    options.given = command.given();
    options.command_line = command.arguments(argc, argv);
    if (auto const note = detail::note_on_quota(processor_quota(), allowed_processors()); !note.empty())
      options.warnings.push_back(note);
    if (place.rank == 0 && place.launcher != launch::Launcher::lockstep) {
      if (place.restarts == 0) check_save_dir(options.save_dir, options.resume);
      check_init_from(options.init_from);
      check(options);
      if (!options.dry_run && !options.save_dir.empty()) held = SaveDirLock(options.save_dir);
    } else if (prepare && place.launcher != launch::Launcher::lockstep) {
      prints = place.local_rank == 0;
      prepare(options);
    }
    prints = true;
    who.clear();
    auto ranks = detail::launch_options(options, place);
    ranks.report = [&](std::string const& sentence) { say(detail::with_memory_hint(sentence)); };
    ranks.warn = [&](std::string const& lines) {  // the last activity of each rank is a line
      std::istringstream in(lines);
      for (std::string line; std::getline(in, line);) say(line);
    };
    return launch::run(ranks, [&](launch::World& world) {
      detail::MpiSession const mpi(world);
      Training<Options> training(options, world);
      int const code = detail::with_memory_message([&] { return train_rank(training); });
      if (world.rank == 0)
        if (auto const note = detail::note_on_lost_output(stdout); !note.empty()) say("note: " + note);
      return code == 0 && training.stopped_by() != 0 ? 128 + training.stopped_by() : code;
    });
  } catch (std::exception const& error) {
    if (prints)
      say(who + detail::message_of(error));
    else  // many launchers kill all ranks when one exits, and the rank that prints may not have printed yet
      std::this_thread::sleep_for(std::chrono::seconds(1));
    bool const is_lookup = dynamic_cast<std::filesystem::filesystem_error const*>(&error) != nullptr;
    return is_lookup ? 2 : launch::exit_code(error);
  }
}

}}}  // namespace lockstep::app

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/app/run.ipp>
#endif
