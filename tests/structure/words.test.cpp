// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <regex.h>

#include <algorithm>
#include <regex>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "structure/source_tree.hpp"

using namespace lockstep_test;

namespace {

/// Extended regular expression of the C library, which finds it in a tenth of the time of std::regex.
class Form {
 public:
  explicit Form(char const* text, int flags = 0) {
    if (::regcomp(&form_, text, REG_EXTENDED | REG_NOSUB | flags) != 0) throw std::invalid_argument(text);
  }
  Form(Form const&) = delete;
  Form& operator=(Form const&) = delete;
  ~Form() { ::regfree(&form_); }

  [[nodiscard]] bool is_in(std::string const& line) const {
    return ::regexec(&form_, line.c_str(), 0, nullptr, 0) == 0;
  }

 private:
  ::regex_t form_;
};

struct Rule {
  Form form;
  char const* instead;
};
Form word(char const* form) { return Form(form, REG_ICASE); }

std::span<Rule const> rules() {
  static Rule const all[] = {
      {Form("(^|[.!?:] |\\| |^#+ |^- |^[0-9]+\\. |\\*\\*)(Of|Who|Whoever|What|The same|As which) "),
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
      {word("(^|[^-])\\bneighbou?r(s|ing)?\\b"), "adjacent, next, vectorized access"},
      {word("\\bstands? for\\b"), "means, replaces, is the name of"},
  };
  return all;
}

/// Further rules for titles of tests, which begin with a lower-case letter and name no code.
std::span<Rule const> title_rules() {
  static Rule const all[] = {
      {word("^(of|who|whoever|whom|what|the same|as which) "), "begin with a noun phrase"},
      {word("\\b(strangers?|guests?)\\b"), "unauthenticated peer, connection"},
      {word("\\briders?\\b"), "piggybacked scalars"},
      {word("\\bfor ever\\b"), "without an end"},
  };
  return all;
}

/// Returns the rule that a line of prose breaks, or null. Code in backquotes and targets of links do not count.
Rule const* broken_by(std::string const& line) {
  static std::regex const code("`[^`]*`|\\]\\([^)]*\\)");
  auto const prose = line.find_first_of("`]") == std::string::npos ? line : std::regex_replace(line, code, "`");
  for (auto const& rule : rules())
    if (rule.form.is_in(prose)) return &rule;
  return nullptr;
}

/// Returns the rule that a title of a test breaks, or null.
Rule const* broken_by_title(std::string const& title) {
  for (auto const& rule : title_rules())
    if (rule.form.is_in(title)) return &rule;
  return broken_by(title);
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

struct Title {
  std::size_t line;
  std::string text;
};

/// Returns the titles of test cases and subcases in `source`. Adjacent literals are one title.
std::vector<Title> titles_of(std::string const& source) {
  static std::regex const arguments("^(_FIXTURE|_TEMPLATE|_TEMPLATE_DEFINE)?\\s*\\(\\s*(\\w+,\\s*)?(?=\")");
  std::vector<Title> titles;
  auto const find = [&](std::size_t from) {
    return std::min(source.find("TEST_CASE", from), source.find("SUBCASE", from));
  };
  for (auto at = find(0); at < source.size(); at = find(at + 1)) {
    auto const after = source.begin() + static_cast<std::ptrdiff_t>(source.find("CASE", at) + 4);
    std::smatch macro;
    if (!std::regex_search(after, source.end(), macro, arguments, std::regex_constants::match_continuous)) continue;
    std::string text;
    for (auto i = static_cast<std::size_t>(macro[0].second - source.begin()); i < source.size() && source[i] == '"';) {
      for (++i; i < source.size() && source[i] != '"'; ++i) {
        if (source[i] == '\\' && i + 1 < source.size()) ++i;
        text += source[i];
      }
      i = source.find_first_not_of(" \n", i + 1);
    }
    auto const begin = source.begin() + static_cast<std::ptrdiff_t>(at);
    titles.push_back({1 + static_cast<std::size_t>(std::count(source.begin(), begin, '\n')), text});
  }
  return titles;
}

/// Returns the comment of a line of C++, without its slashes; empty without one.
std::string comment_of(std::string const& line) {
  for (std::size_t i = 0, quotes = 0; i + 1 < line.size(); ++i) {
    if (line[i] == '\\')
      ++i;
    else if (line[i] == '"')
      ++quotes;
    else if (quotes % 2 == 0 && line.compare(i, 2, "//") == 0) {
      auto const text = line.find_first_not_of("/< ", i);
      return text == std::string::npos ? "" : line.substr(text);
    }
  }
  return {};
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
  int docstrings = 0;
  for (auto const& header : library_files()) {
    int number = 0;
    for (auto const& line : lines_of(source_root / "include/lockstep" / header)) {
      ++number;
      auto const slashes = line.find("///");
      if (slashes == std::string::npos) continue;
      ++docstrings;
      auto text = line.substr(std::min(line.size(), line.find_first_not_of("/< ", slashes)));
      if (text.starts_with('@')) text.erase(0, std::min(text.size(), text.find(' ') + 1));
      check_prose(header + ":" + std::to_string(number), text);
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

TEST_CASE("titles are found with their lines, and their rules find banned forms") {
  auto const titles = titles_of(
      "\nTEST_CASE(\"a \\\"b\\\" \"\n    \"c\") {\n  SUBCASE(\"d\") {}\nTEST_CASE_TEMPLATE_DEFINE(\"e\", T, id)"
      "\nTEST_CASE_FIXTURE(Fixture, \"f\") {}\n#define TEST_CASE(name)");
  REQUIRE(titles.size() == 4);
  CHECK(titles[0].text == "a \"b\" c");
  CHECK(titles[0].line == 2);
  CHECK(titles[1].text == "d");
  CHECK(titles[2].line == 5);
  CHECK(titles[3].text == "f");
  for (char const* const bad :
       {"of two ranks one fails", "what is wrong is told", "who waits is named", "the same bits again", "a run goes on",
        "strangers are refused", "a row's neighbours", "a word that stands for a value"})
    CHECK_MESSAGE(broken_by_title(bad) != nullptr, bad);
  for (char const* const good : {"resume from 4 ranks on 2 gives equal bits", "offsets of rows", "whole rows are read"})
    CHECK_MESSAGE(broken_by_title(good) == nullptr, good);
}

TEST_CASE("titles of tests are written in plain English") {
  std::size_t titles = 0;
  for (auto const& file : files_below(source_root / "tests", {".cpp", ".hpp", ".cu", ".cuh"})) {
    std::ostringstream source;
    for (auto const& line : lines_of(source_root / "tests" / file)) source << line << '\n';
    for (auto const& title : titles_of(source.str())) {
      ++titles;
      if (auto const* const rule = broken_by_title(title.text))
        CHECK_MESSAGE(false, "tests/", file, ":", title.line, ": instead write ", std::string(rule->instead), ": ",
                      title.text);
    }
  }
  CHECK(titles > 2000);
}

TEST_CASE("comments are found after code and outside strings") {
  CHECK(comment_of("  int a;  // two words") == "two words");
  CHECK(comment_of("/// a docstring") == "a docstring");
  CHECK(comment_of(R"(open("http://host");)").empty());
  CHECK(comment_of("a / b").empty());
}

TEST_CASE("comments are written in plain English") {
  int comments = 0;
  for (std::string const folder : {"include", "tests", "benchmarks", "examples"})
    for (auto const& file : files_below(source_root / folder, {".cpp", ".hpp", ".cu", ".cuh", ".h", ".ipp", ".icuh"})) {
      int number = 0;
      for (auto const& line : lines_of(source_root / folder / file)) {
        ++number;
        auto const comment = comment_of(line);
        if (comment.empty() || comment.starts_with("CASE ")) continue;
        ++comments;
        check_prose(folder + "/" + file + ":" + std::to_string(number), comment);
      }
    }
  CHECK(comments > 5000);
}
