// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <regex>
#include <string>
#include <vector>

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

namespace {
/// The fields of a struct of options, in its order.
std::vector<std::string> fields_of(std::string const& header, std::string const& type) {
  std::regex const field("^  [A-Za-z0-9:<>,_* ]+ ([a-z_]+)( = .*|\\{.*)?;.*");
  std::vector<std::string> fields;
  bool inside = false;
  for (auto const& line : lines_of(source_root / "include/lockstep" / header)) {
    if (line == "struct " + type + " {") inside = true;
    if (line == "};") inside = false;
    if (std::smatch found; inside && std::regex_match(line, found, field)) fields.push_back(found[1]);
  }
  return fields;
}
/// The names in the first column of the table that begins so.
std::vector<std::string> names_in(std::string const& page, std::string const& head) {
  std::regex const name("`([a-z_]+)`");
  std::vector<std::string> names;
  bool inside = false;
  for (auto const& line : lines_of(source_root / "docs" / page)) {
    inside = line.starts_with(head) || (inside && line.starts_with("|"));
    auto const cell = inside && !line.starts_with(head) ? line.substr(0, line.find('|', 1)) : std::string();
    for (std::sregex_iterator at(cell.begin(), cell.end(), name), end; at != end; ++at) names.push_back((*at)[1]);
  }
  return names;
}
}  // namespace

TEST_CASE("tables of options name all fields, in the order in which C++ wants them") {
  CHECK(names_in("reference/trainer.md", "| field of `FitOptions` |") ==
        fields_of("train/fit_options.hpp", "FitOptions"));
  CHECK(names_in("reference/data-loader.md", "| option | default |") ==
        fields_of("data/data_loader_options.hpp", "DataLoaderOptions"));
  CHECK(names_in("reference/data-loader.md", "| option | default |").size() > 5);
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
