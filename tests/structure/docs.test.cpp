// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <regex>
#include <string>

#include "structure/source_tree.hpp"

using namespace lockstep_test;

TEST_CASE("pages that the library's messages name exist") {
  std::regex const page("docs/[a-z_/-]+\\.md");
  int named = 0;
  for (auto const& header : library_headers()) {
    for (auto const& line : lines_of(source_root / "include/lockstep" / header)) {
      for (std::sregex_iterator at(line.begin(), line.end(), page), end; at != end; ++at, ++named)
        CHECK_MESSAGE(std::filesystem::exists(source_root / at->str()), header, " names ", at->str());
    }
  }
  CHECK(named > 0);
}

TEST_CASE("links between pages lead somewhere") {
  std::regex const link("\\]\\(([^)#:]+)(#[^)]*)?\\)");
  int links = 0;
  auto pages = files_below(source_root / "docs", {".md"});
  for (auto& page : pages) page = "docs/" + page;
  pages.insert(pages.end(), {"README.md", "CHANGELOG.md"});
  for (auto const& page : pages) {
    bool code = false;  // a lambda looks like a link
    for (auto const& line : lines_of(source_root / page)) {
      if (line.starts_with("```")) code = !code;
      if (code) continue;
      for (std::sregex_iterator at(line.begin(), line.end(), link), end; at != end; ++at, ++links) {
        auto const target = (source_root / page).parent_path() / (*at)[1].str();
        CHECK_MESSAGE(std::filesystem::exists(target), page, " links to ", (*at)[1].str());
      }
    }
  }
  CHECK(links > 0);
}
