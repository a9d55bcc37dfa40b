// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/app/run.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app::detail {

LOCKSTEP_INLINE void print_error(std::string const& program, std::string sentence) {
  sentence = limited_message(sentence);
  std::ranges::replace_if(
      sentence, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }, ' ');
  std::fprintf(stderr, "%s: %s\n", program.c_str(), sentence.c_str());
}

LOCKSTEP_INLINE std::string host_name() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

LOCKSTEP_INLINE void adopt_saved_flags(Command& command, Options& options, std::size_t known) {
  std::string saved;
  try {
    saved = train::load_text(options.init_from, saved_flags_key);
  } catch (DataError const&) {
    return;  // saved by another program; loading the parameters explains what else is wrong
  }
  std::string changed;
  auto const seed = saved.starts_with("--seed=") ? saved.substr(0, saved.find('\n')) : std::string();
  for (auto const& line : command.adopt(seed, 0)) changed += " " + line;  // it chooses the samples that are held out
  for (auto const& line : command.adopt(saved, known)) changed += " " + line;
  if (!changed.empty()) options.warnings.push_back("as saved with the parameters:" + changed);
}

LOCKSTEP_INLINE launch::Options launch_options(Options const& options, launch::Environment const& place) {
  auto ranks = options.launch_options;
  GivenFlags::assign(launch::describe(ranks), options);
  ranks.nproc = options.nproc;
  ranks.threads = place.size > 1 ? 1 : options.ranks / options.nproc;
  ranks.arguments = options.command_line;
  ranks.engine = options.engine;
  if (options.stall_timeout == 0) ranks.limits.stall_seconds = std::numeric_limits<double>::infinity();
  if (!options.save_dir.empty() && !options.dry_run) ranks.on_signal = launch::OnSignal::request_stop;
  ranks.line = [](int rank, int stream, std::string const& line) {
    auto const whole = "[rank " + std::to_string(rank) + "] " + line + "\n";
    auto* const here = stream == 1 ? stdout : stderr;
    std::fwrite(whole.data(), 1, whole.size(), here);
    std::fflush(here);
  };
  return ranks;
}

}}}  // namespace lockstep::app::detail
