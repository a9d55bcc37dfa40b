// SPDX-License-Identifier: Apache-2.0
// scaling_report ROOT… [flags]: compares all runs below some folders, and writes a page with figures, tables and
// recommendations, images, CSV and LaTeX.
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <lockstep/app/command.hpp>
#include <lockstep/app/link_flags.hpp>
#include <lockstep/app/study_files.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/launch/options.hpp>
#include <lockstep/scaling/study/study_report.hpp>

using namespace lockstep;

namespace {

int report(int argc, char** argv) {
  app::Command command("scaling_report ROOT… [flags]: figures, tables and recommendations of all runs below folders");
  std::string out;
  scaling::StudyOptions options;
  command.add("--out", out, "Folder that receives the report; default: report in the first ROOT");
  command.add("--warmup", options.warmup_epochs, 0, 1000000, "First epochs that times and rates leave out");
  command.add("--datasets", "Names of the data sets to report on, as in ag_news,imdb (default: all)",
              [&](auto const&, auto const& text) {
                std::istringstream list(text);
                for (std::string name; std::getline(list, name, ',');) options.datasets.push_back(name);
              });
  app::add_link(command, options.link, options.alpha_us, options.beta_gb_s);
  int at = 1;
  std::vector<std::string> roots;
  while (at < argc && argv[at][0] != '-') roots.emplace_back(argv[at++]);
  std::vector<char const*> words{argv[0]};
  words.insert(words.end(), argv + at, argv + argc);
  if (!command.parse(static_cast<int>(words.size()), words.data())) {
    std::fputs(command.help().c_str(), stdout);
    return 0;
  }
  if (roots.empty())
    throw ConfigError("needs the folders of runs before all flags: scaling_report runs/quickstart --out report");
  if (out.empty()) out = (std::filesystem::path(roots[0]) / "report").string();
  auto const study = scaling::Study::read(roots, options);
  auto const files = app::write_study_files(study, out);
  std::printf("%s\n", scaling::study_summary(study).c_str());
  for (auto const& note : study.notes) std::printf("note: %s\n", note.c_str());
  for (auto const& note : files.notes) std::printf("note: %s\n", note.c_str());
  std::printf("report: %s\n", files.html.c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return launch::exit_code_of("scaling_report", [&] { return report(argc, argv); });
}
