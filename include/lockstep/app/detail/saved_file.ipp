// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <sstream>

#include <lockstep/app/detail/saved_file.hpp>
#include <lockstep/train/files/safetensors.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app::detail {

LOCKSTEP_COLD_INLINE std::string other_flags(std::string const& file, Options const& options) {
  std::string saved, was, is;
  try {
    saved = train::load_text(file, saved_flags_key);
  } catch (Error const&) {
    return {};  // damaged, or saved by another program
  }
  std::istringstream lines(saved);
  for (std::string line; std::getline(lines, line);) {
    auto const name = line.substr(0, line.find('=') + 1);
    auto const at = ("\n" + options.saved_flags).find("\n" + name);
    auto const now =
        at == std::string::npos ? "" : options.saved_flags.substr(at, options.saved_flags.find('\n', at) - at);
    if (now == line || now.empty() || name == "--seed=") continue;  // the seed says nothing about the model
    was += " " + line;
    is += " " + now;
  }
  return was.empty() ? "" : " was saved with" + was + ", and this run has" + is;
}

LOCKSTEP_COLD_INLINE std::string saved_file_message(std::string_view flag, std::string const& file,
                                                    Options const& options, std::string message) {
  if (file.empty() || !message.starts_with(file + ":")) return {};
  struct Phrase {
    std::string_view library, command_line;
  };
  static constexpr Phrase phrases[] = {
      {": load(path, prefix, in_file) reads one as the other", "; only parameters of equal names are read"},
      {": if only names differ, pass a function of names to load(path, names)",
       "; give a file that this program saved"},
      {": make it with the sizes of the run that saved it, such as the same vocabulary",
       "; give the flags for sizes that the file was saved with, and data that give an equal vocabulary"},
      {"use the model and the optimizer that it was saved with",
       "give the flags for the model and the optimizer that it was saved with"},
      {"resume from a checkpoint of a run",
       "resume from a step_N.safetensors, or start from these parameters with --init-from"},
      {"DataLoader: the state is of ", "was saved with a data set of "},
      {", and the dataset and its order have ", ", and the data of this run has "},
      {"resume with the data, sampler and seed of the earlier run, or start from the beginning",
       "give the --data and --seed of the run that saved it, or start a new run without --resume"},
      {"use the tail of the earlier run", "the program has changed: use the earlier one, or start a new run"},
      {" under Reproducible with ", " with --reproducible and "},
      {" without Reproducible", " without --reproducible"},
      {"with the seed ", "with --seed "},
  };
  for (auto const& [library, command_line] : phrases)
    for (std::size_t at = 0; (at = message.find(library, at)) != std::string::npos; at += command_line.size())
      message.replace(at, library.size(), command_line);
  if (message.find("an effective batch of ") != std::string::npos)
    message += "; --batch-size, --grad-accum-steps and the numbers of ranks and devices determine it";
  auto const others = other_flags(file, options);
  return std::string(flag) + " " + message + (others.empty() ? "" : "; it" + others);
}

LOCKSTEP_COLD_INLINE train::NamesInFile names_to_evaluate(std::string const& file, nn::ParameterLayout const& layout,
                                                          train::NamesInFile const& names) {
  train::detail::SafetensorsFile const saved(file);
  auto const has = [&](auto const& entry) { return saved.header.find(entry.name) != nullptr; };
  return std::ranges::all_of(layout.entries(), has) && std::ranges::all_of(layout.buffers(), has) ? train::NamesInFile()
                                                                                                  : names;
}

}}}  // namespace lockstep::app::detail
