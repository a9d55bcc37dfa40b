// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <doctest/doctest.h>

#include <lockstep/scaling/study/study_tables.hpp>

#include "scaling/study/saved_runs.hpp"
#include "skip.hpp"

using namespace lockstep;
using namespace lockstep_test;
using scaling::Study;

namespace {
bool contains(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

/// Three configurations of a data set whose name needs escapes everywhere.
Study saved(TemporaryFolder const& folder) {
  std::string const data = "a_b, 50% & \"c\".csv";
  SavedExample{.speed = 1000, .data = data}.save(folder / "one");
  SavedExample{.speed = 1100, .data = data, .seed = 2}.save(folder / "one2");
  SavedExample{.parallel = "dp", .devices = 2, .speed = 1500, .data = data}.save(folder / "dp");
  SavedExample{.parallel = "ddp", .devices = 2, .speed = 1890, .data = data}.save(folder / "ddp");
  return Study::read({folder / ""});
}
}  // namespace

TEST_CASE("tables have measured rows with spread, and predicted rows that are marked") {
  TemporaryFolder const folder;
  auto const study = saved(folder);
  auto const table = results_table(study.groups[0]);
  REQUIRE(table.rows.size() == 5);
  CHECK(table.rows[0].cells[4] == "1050.0 ± 70.7");
  CHECK(table.rows[2].cells[5] == "1.80");
  CHECK(table.rows[2].cells[6] == "90");
  CHECK(table.rows[4].kind == scaling::StudyTable::Row::Kind::predicted);
  CHECK(table.rows[4].cells.back() == "predicted");
  CHECK(table.rows[4].cells[7] == "n/a");
  CHECK(contains(table.text(), "\nrun     devices  runs"));
  CHECK(contains(table.html(), "<caption>Results: a_b, 50% &amp; &quot;c&quot;</caption>"));
  CHECK(contains(table.html(), "<tr class=\"predicted\">"));
  auto const both = dp_against_ddp_table(study.groups[0]);
  REQUIRE(both.rows.size() == 2);
  CHECK(both.rows[0].cells[8] == "equal");
  CHECK(both.rows[1].cells[0] == "8");
  CHECK(both.rows[1].cells.back() == "predicted");
}

TEST_CASE("the CSV has one row per configuration with all figures, and quotes names") {
  TemporaryFolder const folder;
  auto const csv = study_csv(saved(folder));
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 6);
  CHECK(contains(
      csv, "\n\"a_b, 50% & \"\"c\"\"\",toy,1000000,32,device,fp32,host,single,self,1,1,measured,2,0,0,measured,"));
  CHECK(contains(csv, ",ddp,process,2,1,measured,1,0,0,measured,"));
  CHECK(contains(csv, ",1890,,"));
  CHECK(contains(csv, ",12000000,8000000,equal,\n"));
  CHECK(contains(csv, ",dp,,8,1,predicted,0,0,0,measured,"));
}

TEST_CASE("the LaTeX table is escaped, says n/a, and compiles") {
  TemporaryFolder const folder;
  auto const latex = study_latex(saved(folder));
  CHECK(contains(latex, "{\\textit{a\\_b, 50\\% \\& ''c''}, batch 32 per device} \\\\\nsingle & 1 & "));
  CHECK(contains(latex, "& $1050 \\pm 71$ & $1.00$ &"));
  CHECK(contains(latex, "ddp$^\\dagger$ & 8 & "));
  CHECK(contains(latex, "& n/a \\\\\n"));
  if (std::system("command -v pdflatex >/dev/null") != 0) return skip(Need::latex, "the table is not compiled");
  std::filesystem::create_directories(folder / "tex");
  write_file(folder / "tex/table.tex", latex);
  write_file(folder / "tex/main.tex",
             "\\documentclass{article}\n\\let\\toprule\\hline\\let\\midrule\\hline\\let\\bottomrule\\hline\n"
             "\\begin{document}\n\\input{table}\n\\end{document}\n");
  auto const compile = "cd '" + folder / "tex" + "' && pdflatex -interaction=nonstopmode -halt-on-error main >log";
  CHECK(std::system(compile.c_str()) == 0);
}
