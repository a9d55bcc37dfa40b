// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <system_error>

#include <lockstep/app/study_files.hpp>
#include <lockstep/core/atomic_file.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/launch/run/run_program.hpp>
#include <lockstep/scaling/study/study_figures.hpp>
#include <lockstep/scaling/study/study_report.hpp>
#include <lockstep/scaling/study/study_tables.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app {

LOCKSTEP_INLINE std::string find_program(std::string const& name) {
  char const* const path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (auto file = folder + "/" + name; !folder.empty() && ::access(file.c_str(), X_OK) == 0) return file;
  return {};
}

LOCKSTEP_INLINE void create_report_folder(std::string const& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (std::error_code other; error && !std::filesystem::is_directory(folder, other))
    throw ConfigError(folder + ": cannot be created: " + error.message() + "; name another folder with --out");
  try {
    static_cast<void>(AtomicFile(folder + "/report.html"));
  } catch (DataError const& refused) {
    throw ConfigError(std::string(refused.what()) + "; name another folder with --out");
  }
}

LOCKSTEP_INLINE StudyFiles write_study_files(scaling::Study const& study, std::string const& folder,
                                             std::string const& gnuplot, std::string const& latex) {
  create_report_folder(folder);
  StudyFiles out;
  auto const write = [&](std::string const& name, std::string const& text) {
    AtomicFile file(folder + "/" + name);
    file.write(text);
    file.commit();
    return folder + "/" + name;
  };
  std::string script;
  std::vector<std::string> pngs;
  for (auto const& group : study.groups)
    for (auto const& figure : scaling::study_figures(group)) {
      out.images.push_back(write(figure.name + ".svg", figure.drawing.svg()));
      pngs.push_back(folder + "/" + figure.name + ".png");
      script += "reset\n" + figure.drawing.gnuplot(pngs.back());
    }
  if (!script.empty() && gnuplot.empty()) {
    out.notes.emplace_back(
        "no PNG files were written, because there is no gnuplot; to install it: "
        "apt-get install gnuplot-nox");
  } else if (!script.empty()) {
    auto const file = write(".figures.gnuplot", script);
    auto const end = launch::run_program({gnuplot, file}, [](int, std::string const&) {});
    std::error_code error;
    std::filesystem::remove(file, error);
    if (end.exit_code == 0)
      out.images.insert(out.images.end(), pngs.begin(), pngs.end());
    else
      out.notes.push_back("no PNG files were written; gnuplot says: " + end.last_error);
  }
  write("comprehensive_summary.csv", scaling::study_csv(study));
  write("summary_table.tex", scaling::study_latex(study));
  if (latex.empty())
    out.notes.emplace_back(
        "summary_table.tex needs LaTeX, which is not here; to install it: apt-get install texlive-latex-recommended");
  write("performance_report.txt", scaling::study_text(study));
  out.html = write("report.html", scaling::study_html(study));
  return out;
}

}}}  // namespace lockstep::app
