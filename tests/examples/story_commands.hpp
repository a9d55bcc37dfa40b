// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "examples/program.hpp"
#include "python.hpp"
#include "skip.hpp"
#include "temporary_folder.hpp"

namespace lockstep_test {

/// Runs every command of a story's page, docs/explanation/stories/PAGE.md. A row of its table is
/// | task | `command` | outcome |, and the outcome begins with trains, evaluates or refused. Checks the exit code, 0 or
/// 2,
/// and that the output has each word that the outcome quotes. Commands by torchrun are skipped without PyTorch.
/// @param paths values of the commands' placeholders, such as the name of a folder
/// @param complete complete(flags, command) adds flags that make the run small
/// @param least minimum number of commands on the page
template <class Complete>
void check_story_commands(std::string const& page, std::string const& program,
                          std::map<std::string, std::string> const& paths, Complete const& complete, int least) {
  using Words = std::vector<std::string>;
  std::regex const row(R"(^\| ([^|]+) \| `([^`]+)` \| (trains|evaluates|refused)(.*) \|$)"), quoted("`([^`]+)`");
  bool const torch = std::system(("'" + python() + "' -c 'import torch' >/dev/null 2>&1").c_str()) == 0;
  std::istringstream lines(read_file(std::string(LOCKSTEP_SOURCE_DIR) + "/docs/explanation/stories/" + page + ".md"));
  int commands = 0, skipped = 0;
  for (std::string line; std::getline(lines, line);) {
    std::smatch found;
    if (!std::regex_match(line, found, row)) continue;
    ++commands;
    CAPTURE(line);
    Words words;
    std::istringstream all(found[2].str());
    for (std::string word; all >> word;) {
      auto const path = paths.find(word);
      words.push_back(path == paths.end() ? word : path->second);
    }
    auto const name = std::find(words.begin(), words.end(), program);
    REQUIRE(name != words.end());
    Words command(words.begin(), name), flags(name + 1, words.end());
    if (!command.empty() && command[0] == "torchrun") {
      if (!torch) {
        ++skipped;
        continue;
      }
      command.erase(command.begin());
      command.insert(command.begin(), {python(), "-m", "torch.distributed.run", "--standalone"});
    }
    command.push_back(example(program));
    complete(flags, found[2].str());
    command.insert(command.end(), flags.begin(), flags.end());
    auto const outcome = Program("/usr/bin/env", command).wait(120);
    CAPTURE(outcome.out);
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == (found[3] == "refused" ? 2 : 0));
    auto const rest = found[4].str();
    for (std::sregex_iterator at(rest.begin(), rest.end(), quoted), end; at != end; ++at)
      CHECK_MESSAGE(contains(outcome.out + outcome.err, (*at)[1]), "not in the output: ", (*at)[1].str());
  }
  CHECK(commands >= least);
  if (skipped > 0) skip(Need::torch, "torchrun");
}

}  // namespace lockstep_test
