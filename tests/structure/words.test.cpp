// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <regex>
#include <string>
#include <vector>

#include "structure/source_tree.hpp"

using namespace lockstep_test;

namespace {

struct Rule {
  std::regex form;
  char const* instead;
};

std::vector<Rule> const& rules() {
  auto const word = [](char const* form) { return std::regex(form, std::regex::icase); };
  static std::vector<Rule> const all{
      {std::regex("(^|[.!?:] |\\| |^#+ |^- |^[0-9]+\\. |\\*\\*)(Of|Who|Whoever|What|The same|As which) "),
       "begin with a verb or a noun phrase"},
      {word("\\b(go|goes|going|went|gone) on\\b"), "resume, continue"},
      {word("\\banew\\b"), "again, restart, rebuild"},
      {word("\\balike\\b"), "equal, identical, both"},
      {word("\\bto the bit\\b"), "bit-identical"},
      {word("\\b(one|each) behind (the other|each other|one another)\\b"), "concatenated, followed by"},
      {word("\\bbeside\\b"), "next to, in addition to, with"},
      {word("\\bbut for\\b"), "except"},
      {word("\\bunless told\\b"), "by default"},
      {word("\\bwhere (there is|there are|it was)\\b"), "if"},
      {word("\\bpictures?\\b"), "image"},
      {word("\\basked to end\\b"), "terminated, stopped on request"},
      {word("\\bwho speaks\\b"), "rank zero, main rank"},
      {word("\\b(lies|lie|stands|stand) (in|on|at|behind|there|here)\\b"), "is in, is memory-mapped, in place"},
      {word("\\bnobody\\b"), "a passive sentence, or the one that does not"},
  };
  return all;
}

/// Returns the rule that a line of prose breaks, or null. Code in backquotes and targets of links do not count.
Rule const* broken_by(std::string const& line) {
  static std::regex const code("`[^`]*`|\\]\\([^)]*\\)");
  auto const prose = std::regex_replace(line, code, "`");
  for (auto const& rule : rules())
    if (std::regex_search(prose, rule.form)) return &rule;
  return nullptr;
}

/// Returns the string literals of a line of code.
std::vector<std::string> literals_of(std::string const& line) {
  std::vector<std::string> found;
  bool inside = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') {
      if (!inside) found.emplace_back();
      inside = !inside;
    } else if (line[i] == '\\' && i + 1 < line.size()) {
      if (inside) found.back() += line[i + 1];
      ++i;
    } else if (inside) {
      found.back() += line[i];
    } else if (line.compare(i, 2, "//") == 0) {
      break;
    }
  }
  return found;
}

/// Fails for each line of prose that breaks a rule.
void check_prose(std::string const& place, std::string const& line) {
  if (auto const* const rule = broken_by(line))
    CHECK_MESSAGE(false, place, ": instead write ", std::string(rule->instead), ": ", line);
}

}  // namespace

TEST_CASE("the rules find banned forms, and accept plain sentences") {
  for (char const* const bad :
       {"Of AdamW", "## What it leaves", "a run goes on", "It starts. Who waits, waits.", "equal to the bit",
        "- The same for rows", "| Of all ranks |", "none but for one", "memory lies in the slab"})
    CHECK_MESSAGE(broken_by(bad) != nullptr, bad);
  for (char const* const good :
       {"AdamW weight-decay coefficient", "The run resumes.", "Rank zero prints what it was given.",
        "Call `go on` again.", "The sum of all ranks", "Offset of the first token"})
    CHECK_MESSAGE(broken_by(good) == nullptr, good);
}

TEST_CASE("pages are written in plain English") {
  auto pages = files_below(source_root / "docs", {".md"});
  for (auto& page : pages) page = "docs/" + page;
  pages.insert(pages.end(), {"README.md", "CONTRIBUTING.md", "CHANGELOG.md"});
  CHECK(pages.size() > 100);
  for (auto const& page : pages) {
    bool code = false;
    int number = 0;
    for (auto const& line : lines_of(source_root / page)) {
      ++number;
      if (line.starts_with("```")) code = !code;
      if (!code) check_prose(page + ":" + std::to_string(number), line);
    }
  }
}

TEST_CASE("docstrings are written in plain English") {
  static std::regex const docstring("///<? ?(@[a-z]+ )?(.*)");
  int docstrings = 0;
  for (auto const& header : library_files()) {
    int number = 0;
    for (auto const& line : lines_of(source_root / "include/lockstep" / header)) {
      ++number;
      std::smatch found;
      if (!std::regex_search(line, found, docstring)) continue;
      ++docstrings;
      check_prose(header + ":" + std::to_string(number), found[2]);
    }
  }
  CHECK(docstrings > 1000);
}

TEST_CASE("literals are found between quotes and outside comments") {
  CHECK(literals_of(R"(fail("a \"b\" c" + x + "d");  // "no")") == std::vector<std::string>{"a \"b\" c", "d"});
  CHECK(literals_of("// \"no\"").empty());
}

TEST_CASE("messages are written in plain English") {
  int messages = 0;
  auto const check = [&](std::string const& file) {
    int number = 0;
    for (auto const& line : lines_of(source_root / file)) {
      ++number;
      for (auto const& literal : literals_of(line)) {
        if (literal.find(' ') == std::string::npos) continue;
        ++messages;
        check_prose(file + ":" + std::to_string(number), literal);
      }
    }
  };
  for (auto const& header : library_files()) check("include/lockstep/" + header);
  for (auto const& source : files_below(source_root / "examples", {".hpp", ".cpp", ".cu"})) check("examples/" + source);
  CHECK(messages > 1000);
}
