// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <string>

#include <doctest/doctest.h>

#include <lockstep/app/study_files.hpp>
#include <lockstep/core/error.hpp>

#include "scaling/study/saved_runs.hpp"

using namespace lockstep;
using namespace lockstep_test;
using scaling::Study;

TEST_CASE("all files of a report are written; without gnuplot, a note says how to install it") {
  TemporaryFolder const folder;
  SavedExample{}.save(folder / "runs/one");
  SavedExample{.parallel = "ddp", .devices = 2, .speed = 1800}.save(folder / "runs/two");
  auto const study = Study::read({folder / "runs"});
  auto const files = app::write_study_files(study, folder / "new/report", "", "");
  REQUIRE(files.notes.size() == 2);
  CHECK(files.notes[0].find("apt-get install gnuplot-nox") != std::string::npos);
  CHECK(files.notes[1].find("apt-get install texlive-latex-recommended") != std::string::npos);
  CHECK(files.images.size() == 7);
  for (auto const& image : files.images) CHECK(read_file(image).starts_with("<svg "));
  for (auto const* const name : {"comprehensive_summary.csv", "summary_table.tex", "performance_report.txt"})
    CHECK_FALSE(read_file(folder / ("new/report/" + std::string(name))).empty());
  CHECK(read_file(files.html).find("<svg ") != std::string::npos);

  // A program in place of gnuplot gets one script for all images.
  write_file(folder / "gnuplot", "#!/bin/sh\ngrep '^set output .' \"$1\" >'" + folder / "outputs" + "'\n");
  std::filesystem::permissions(folder / "gnuplot", std::filesystem::perms::owner_all);
  CHECK(app::write_study_files(study, folder / "new/report", folder / "gnuplot", "latex").images.size() == 14);
  CHECK(read_file(folder / "outputs").find("toy_throughput.png'\n") != std::string::npos);
  write_file(folder / "gnuplot", "#!/bin/sh\necho 'no font' >&2\nexit 1\n");
  auto const failed = app::write_study_files(study, folder / "new/report", folder / "gnuplot", "latex");
  REQUIRE(failed.notes.size() == 1);
  CHECK(failed.notes[0] == "no PNG files were written; gnuplot says: no font");
}

TEST_CASE("a folder that cannot be written is refused") {
  TemporaryFolder const folder;
  write_file(folder / "file", "");
  CHECK_THROWS_WITH_AS(app::create_report_folder(folder / "file/report"), doctest::Contains("name another folder with"),
                       ConfigError);
  CHECK(app::find_program("sh").ends_with("/sh"));
  CHECK(app::find_program("no_such_program").empty());
}
