// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cctype>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "structure/source_tree.hpp"

using namespace lockstep_test;

TEST_CASE("pages named in the library's messages exist") {
  std::regex const page("docs/[a-z_/-]+\\.md");
  int named = 0;
  for (auto const& header : library_files()) {
    for (auto const& line : lines_of(source_root / "include/lockstep" / header)) {
      for (std::sregex_iterator at(line.begin(), line.end(), page), end; at != end; ++at, ++named)
        CHECK_MESSAGE(std::filesystem::exists(source_root / at->str()), header, " names ", at->str());
    }
  }
  CHECK(named > 0);
}

TEST_CASE("source files named in pages exist") {
  // Pages about former paths name files that no longer exist; NAME is a placeholder.
  std::set<std::string> const about_former_paths{"decisions/0086-families-have-rooms.md", "reference/renamed.md"};
  std::regex const source("`<?([A-Za-z0-9_./-]+/[A-Za-z0-9_.-]+\\.(hpp|cuh|ipp|icuh|cpp|cu|py|sh|cmake))>?`");
  auto const exists = [](std::string const& path) {
    for (char const* const folder : {"", "include", "include/lockstep", "tests", "benchmarks", "examples"})
      if (std::filesystem::exists(source_root / folder / path)) return true;
    return false;
  };
  int named = 0;
  for (auto const& page : files_below(source_root / "docs", {".md"})) {
    if (about_former_paths.contains(page)) continue;
    for (auto const& line : lines_of(source_root / "docs" / page))
      for (std::sregex_iterator at(line.begin(), line.end(), source), end; at != end; ++at, ++named)
        CHECK_MESSAGE((exists((*at)[1]) || at->str().find("NAME") != std::string::npos), page, " names ", at->str());
  }
  CHECK(named > 30);
}

namespace {
/// Returns whether a line of code that ends in `;` declares several variables: it has a comma outside brackets and
/// strings.
bool declares_several(std::string const& code) {
  if (!code.ends_with(';')) return false;
  int depth = 0;
  bool quoted = false;
  for (char const c : code) {
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (std::string_view("<({[").find(c) != std::string_view::npos) ++depth;
    if (std::string_view(">)}]").find(c) != std::string_view::npos) --depth;
    if (c == ',' && depth == 0) return true;
  }
  return false;
}
}  // namespace

TEST_CASE("lines with several variables are found") {
  for (char const* const bad : {"double x = 0, y = 0;", "std::pair<int, int> a, b;", "Index first{}, last{};"})
    CHECK_MESSAGE(declares_several(bad), bad);
  for (char const* const good : {"std::pair<int, int> a;", "char const* text = \"a, b\";", "float at(int i, int j);",
                                 "enum Side { start, end };", "start,"})
    CHECK_MESSAGE(!declares_several(good), good);
}

// The API reference gives such a docstring to the last variable only. `./dev check docs` finds members without one.
TEST_CASE("a docstring after a declaration documents one variable") {
  int docstrings = 0;
  for (auto const& header : library_headers()) {
    if (is_detail(header)) continue;
    int number = 0;
    for (auto const& line : lines_of(source_root / "include/lockstep" / header)) {
      ++number;
      auto const at = line.find("///<");
      if (at == std::string::npos) continue;
      ++docstrings;
      auto const end = line.find_last_not_of(' ', at - 1);
      CHECK_MESSAGE((end == std::string::npos || !declares_several(line.substr(0, end + 1))), header, ":", number,
                    ": declare each variable on a line of its own: ", line);
    }
  }
  CHECK(docstrings > 1000);
}

namespace {
/// Returns the fields of a struct of options, in order; `indent` is the indentation of the struct's own lines.
std::vector<std::string> fields_of(std::string const& header, std::string const& type, std::string const& indent = "") {
  std::regex const field("^  (?!static)[A-Za-z0-9:<>(),_*& ]+ ([a-z_]+)( = .*|\\{.*)?;.*");
  std::vector<std::string> fields;
  bool inside = false;
  for (auto const& whole : lines_of(source_root / "include/lockstep" / header)) {
    if (!whole.starts_with(indent)) continue;
    auto const line = whole.substr(indent.size());
    if (line == "struct " + type + " {") inside = true;
    if (line == "};") inside = false;
    if (std::smatch found; inside && std::regex_match(line, found, field)) fields.push_back(found[1]);
  }
  return fields;
}
/// Returns the names in the first column of the table that begins with this line.
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

TEST_CASE("tables of options list all fields, in declaration order") {
  CHECK(names_in("reference/trainer.md", "| field of `FitOptions` |") ==
        fields_of("train/trainer/fit_options.hpp", "FitOptions"));
  CHECK(names_in("reference/data-loader.md", "| option | default |") ==
        fields_of("data/loader/data_loader_options.hpp", "DataLoaderOptions"));
  CHECK(names_in("reference/data-loader.md", "| option | default |").size() > 5);
  CHECK(names_in("reference/launch.md", "| field of `launch::Options` |") ==
        fields_of("launch/options.hpp", "Options"));
}

TEST_CASE("checks and benchmarks named in pages exist") {
  std::string checks, benchmarks;
  for (auto const& line : lines_of(source_root / "dev"))
    if (auto const at = line.find("local all=("); at != std::string::npos)
      checks = " " + line.substr(at + 11, line.find(')') - at - 11) + " ";
  for (auto const& line : lines_of(source_root / "benchmarks/CMakeLists.txt"))
    if (auto const at = line.find("_benchmark("); at != std::string::npos) benchmarks += line.substr(at) + "\n";
  std::regex const command("\\./dev (check|bench) ([a-z0-9_/]+)");
  int named = 0;
  for (auto const& page : files_below(source_root / "docs", {".md"})) {
    if (page.starts_with("decisions/0106")) continue;  // names a former check
    for (auto const& line : lines_of(source_root / "docs" / page))
      for (std::sregex_iterator at(line.begin(), line.end(), command), end; at != end; ++at, ++named) {
        auto const name = (*at)[2].str();
        bool const known = (*at)[1] == "check" ? checks.find(" " + name + " ") != std::string::npos
                                               : benchmarks.find(name) != std::string::npos;
        CHECK_MESSAGE(known, page, " names ", at->str());
      }
  }
  CHECK(named > 30);
}

TEST_CASE("the table of rooms lists all rooms of each floor") {
  std::map<std::string, std::set<std::string>> documented, found;
  std::regex const name("`([a-z_]+)`");
  bool inside = false;
  for (auto const& line : lines_of(source_root / "docs/explanation/floors.md")) {
    if (line == "| floor | rooms |") inside = true;
    if (!inside) continue;
    std::string floor;  // the first name of the row
    for (std::sregex_iterator at(line.begin(), line.end(), name), end; at != end; ++at) {
      if (floor.empty())
        floor = (*at)[1];
      else
        documented[floor].insert((*at)[1]);
    }
  }
  for (auto const& header : library_headers())
    if (auto const room = std::string(room_of(header));
        height(folder_of(header)) >= 0 && !room.empty() && room.find('.') == std::string::npos)
      found[std::string(folder_of(header))].insert(room);
  CHECK(found.size() > 5);
  for (auto const& floor : floors) {
    std::string const folder(floor.folder);
    CAPTURE(folder);
    for (auto const& room : found[folder]) CHECK_MESSAGE(documented[folder].erase(room) == 1, "the table lacks ", room);
    for (auto const& room : documented[folder])
      CHECK_MESSAGE(false, "the table names a room that is not there: ", room);
  }
}

TEST_CASE("the table of layers' options lists all fields, in declaration order") {
  struct Layer {
    char const *name, *header, *options, *indent;
  };
  for (auto const& entry : {
           Layer{"MultiHeadAttention", "nn/attention/attention.hpp", "Options", "  "},
           {"TransformerEncoder", "nn/transformer/transformer_encoder.hpp", "Options", "  "},
           {"TransformerDecoder", "nn/transformer/transformer_decoder.hpp", "Options", "  "},
           {"GatedFeedForward", "nn/transformer/gated_feed_forward.hpp", "Options", "  "},
           {"FusedEmbedding", "nn/embedding/fused_embedding.hpp", "Options", "  "},
           {"RelativePositionBias", "nn/attention/relative_position_bias.hpp", "Options", "  "},
           {"Conv1d", "nn/convolution/convolution.hpp", "ConvolutionOptions", ""},
           {"ConvTranspose1d", "nn/convolution/transposed_convolution.hpp", "TransposedConvolutionOptions", ""},
           {"MaxPool1d", "nn/pooling/space_pooling.hpp", "SpacePoolingOptions", ""},
           {"BatchNorm", "nn/normalization/batch_norm.hpp", "BatchNormOptions", ""},
           {"GroupNorm", "nn/normalization/group_norm.hpp", "GroupNormOptions", ""},
           {"ImageInput", "nn/convolution/image_input.hpp", "ImageInputOptions", ""},
           {"LogitScale", "nn/contrastive/logit_scale.hpp", "LogitScaleOptions", ""},
       }) {
    std::string const layer = entry.name;
    CAPTURE(layer);
    std::regex const option("`([a-z_]+)`(,| \\(|$| of)");  // and not inside brackets
    std::vector<std::string> documented;
    bool inside = false;
    for (auto const& line : lines_of(source_root / "docs/reference/layers.md")) {
      if (line.starts_with("| layer | options")) inside = true;
      if (line.empty()) inside = false;
      if (!inside || !line.starts_with("| `" + layer + "`")) continue;
      auto cell = line.substr(line.find('|', 1) + 1);
      for (int depth = 0; auto& c : cell) {  // blanks the text inside brackets
        if (c == ')') --depth;
        if (depth > 0) c = ' ';
        if (c == '(') ++depth;
      }
      for (std::sregex_iterator at(cell.begin(), cell.end(), option), end; at != end; ++at)
        documented.push_back((*at)[1]);
    }
    auto const fields = fields_of(entry.header, entry.options, entry.indent);
    CHECK(documented == fields);
    CHECK_FALSE(fields.empty());
  }
}

namespace {
/// Returns the anchor of a heading of a page.
std::set<std::string> anchors_of(std::filesystem::path const& page) {
  std::set<std::string> anchors;
  bool code = false;
  for (auto const& line : lines_of(page)) {
    if (line.starts_with("```")) code = !code;
    if (code || !line.starts_with("#")) continue;
    std::string anchor;
    for (char const c : line.substr(line.find(' ') + 1)) {
      if (c == ' ') anchor += '-';
      if (std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_')
        anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    anchors.insert(anchor);
  }
  return anchors;
}
}  // namespace

TEST_CASE("links between pages have targets") {
  std::regex const link("\\]\\(([^)#:]*)(#([^)]*))?\\)"), words_of_code("`[^`]*`");
  int links = 0;
  auto pages = files_below(source_root / "docs", {".md"});
  for (auto& page : pages) page = "docs/" + page;
  pages.insert(pages.end(), {"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"});
  for (auto const& page : pages) {
    bool code = false;  // a lambda looks like a link
    for (auto const& written : lines_of(source_root / page)) {
      if (written.starts_with("```")) code = !code;
      if (code) continue;
      auto const line = std::regex_replace(written, words_of_code, "");
      for (std::sregex_iterator at(line.begin(), line.end(), link), end; at != end; ++at, ++links) {
        auto const target =
            (*at)[1].length() == 0 ? source_root / page : (source_root / page).parent_path() / (*at)[1].str();
        CHECK_MESSAGE(std::filesystem::exists(target), page, " links to ", (*at)[1].str());
        if ((*at)[3].length() > 0 && std::filesystem::exists(target))
          CHECK_MESSAGE(anchors_of(target).contains((*at)[3]), page, " links to ", (*at)[0].str());
      }
    }
  }
  CHECK(links > 0);
}
