// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <lockstep/scaling/study/study_figures.hpp>

#include "scaling/study/saved_runs.hpp"

using namespace lockstep;
using namespace lockstep_test;
using scaling::Study;

TEST_CASE("a group has all figures, with names for files") {
  TemporaryFolder const folder;
  SavedExample{.data = "AG news, 5 %.csv"}.save(folder / "one");
  SavedExample{.parallel = "dp", .devices = 2, .speed = 1500, .data = "AG news, 5 %.csv"}.save(folder / "two");
  auto const figures = study_figures(Study::read({folder / ""}).groups[0]);
  std::vector<std::string> names;
  for (auto const& figure : figures) {
    names.push_back(figure.name);
    CHECK(figure.drawing.svg().starts_with("<svg "));
    CHECK(figure.drawing.title().find("AG news, 5 %") != std::string::npos);
    CHECK_FALSE(figure.caption.empty());
  }
  std::string const slug = "AG_news__5__";
  CHECK(names == std::vector<std::string>{slug + "_epoch_time_detailed", slug + "_speedup_efficiency",
                                          slug + "_throughput", slug + "_accuracy", slug + "_phases", slug + "_memory",
                                          slug + "_prediction"});
  CHECK(figures[1].drawing.svg().find(">75 %</text>") != std::string::npos);
  CHECK(figures[1].drawing.svg().find(">1.50</text>") != std::string::npos);
  CHECK(figures[4].drawing.svg().find(">exposed communication</text>") != std::string::npos);
  CHECK(figures[5].drawing.svg().find(">first device of dp: sums and updates for all</text>") != std::string::npos);
  CHECK(figures[6].drawing.svg().find(">predicted, not measured</text>") != std::string::npos);
  CHECK(figures[6].drawing.svg().find(">1024</text>") != std::string::npos);
}
