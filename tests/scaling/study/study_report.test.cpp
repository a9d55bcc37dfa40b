// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <doctest/doctest.h>

#include <lockstep/scaling/study/study_report.hpp>

#include "scaling/study/saved_runs.hpp"

using namespace lockstep;
using namespace lockstep_test;
using scaling::Study;

TEST_CASE("the page begins with the summary, then has figures, tables and recommendations, and loads nothing") {
  TemporaryFolder const folder;
  SavedExample{.data = "<a & b>.csv"}.save(folder / "one");
  SavedExample{.parallel = "ddp", .devices = 2, .speed = 1700, .data = "<a & b>.csv"}.save(folder / "two");
  auto const study = Study::read({folder / ""});
  auto const page = study_html(study);
  auto const at = [&](std::string const& part) { return page.find(part); };
  CHECK(at("&lt;a &amp; b&gt;: ddp 2 is fastest with 1700.0 samples/s") < at("<svg "));
  CHECK(at("<svg ") < at("<table>"));
  CHECK(at("<table>") < at("Findings and recommendations"));
  CHECK(at("Findings and recommendations") < page.size());
  CHECK(at("<a & b>") == page.npos);
  for (auto const* const loads : {"<script", "src=", "href=", "url(", "@import"}) CHECK(at(loads) == page.npos);

  auto const text = study_text(study);
  CHECK(text.starts_with("<a & b>: ddp 2 is fastest with 1700.0 samples/s, 1.70 times the speed of one device"));
  CHECK(text.find("\n   recommendation: ") != text.npos);
  CHECK(text.find("\nResults: <a & b>\n") != text.npos);
  CHECK(study_summary(Study{}) == "No run has a result.");
}
