// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <map>
#include <string>
#include <string_view>

#include "structure/source_tree.hpp"

using namespace lockstep_test;

namespace {

/// Headers without their own test, each with the reason.
std::map<std::string_view, std::string_view> const untested{};

/// Headers of more than 600 lines, each with the reason.
std::map<std::string_view, std::string_view> const long_headers{};

std::string test_of(std::string const& header) {
  bool const cuda = header.ends_with(".cuh");
  return header.substr(0, header.rfind('.')) + (cuda ? ".test.cu" : ".test.cpp");
}

}  // namespace

TEST_CASE("every public header has a test with its name in its mirrored folder, and ctest knows it") {
  std::string declared;
  for (auto const& line : lines_of(source_root / "tests/CMakeLists.txt")) declared += line + "\n";
  int looked_at = 0;
  for (auto const& header : library_headers()) {
    if (is_detail(header) || folder_of(header).empty() || untested.contains(header)) continue;
    ++looked_at;
    auto const test = test_of(header);
    CHECK_MESSAGE(std::filesystem::exists(source_root / "tests" / test), "tests/", test, " is missing");
    auto const name = test.substr(0, test.find(".test."));
    std::string const call = header.ends_with(".cuh") ? "lockstep_cuda_test(" : "lockstep_test(";
    bool const known =
        declared.find(call + name + ")") != std::string::npos || declared.find(call + name + " ") != std::string::npos;
    CHECK_MESSAGE(known, "tests/CMakeLists.txt lacks ", call, name, ")");
  }
  CHECK(looked_at >= 5);
}

TEST_CASE("every test file is declared") {
  std::string declared;
  for (auto const& line : lines_of(source_root / "tests/CMakeLists.txt")) declared += line + "\n";
  auto const tests = files_below(source_root / "tests", {".test.cpp", ".test.cu"});
  for (auto const& test : tests) {
    auto const name = test.substr(0, test.find(".test."));
    bool const known = declared.find("test(" + name + ")") != std::string::npos ||
                       declared.find("test(" + name + " ") != std::string::npos;
    CHECK_MESSAGE(known, "tests/CMakeLists.txt does not name ", test);
  }
  CHECK(tests.size() >= 5);
}

TEST_CASE("every benchmark, example and source of compiler errors is declared") {
  struct Declared {
    std::string folder, list, call;
    std::string_view extension;
    bool below = true;  ///< also in folders
  };
  for (auto const& each : {Declared{"benchmarks", "benchmarks", "lockstep_benchmark(", ".bench.cpp"},
                           Declared{"benchmarks", "benchmarks", "lockstep_cuda_benchmark(", ".bench.cu"},
                           Declared{"benchmarks/gpu", "benchmarks", "lockstep_gpu_points(", ".cu"},
                           Declared{"examples", "examples", "lockstep_example(", ".cpp", false},
                           Declared{"tests/compile_fail", "tests", "lockstep_compile_fail(", ".cpp"}}) {
    std::string declared;
    for (auto const& line : lines_of(source_root / each.list / "CMakeLists.txt")) declared += line + "\n";
    int looked_at = 0;
    for (auto const& file : files_below(source_root / each.folder, {each.extension})) {
      if (!each.below && file.find('/') != std::string::npos) continue;
      ++looked_at;
      auto const call = each.call + file.substr(0, file.size() - each.extension.size());
      bool const known =
          declared.find(call + ")") != std::string::npos || declared.find(call + " ") != std::string::npos;
      CHECK_MESSAGE(known, each.list, "/CMakeLists.txt lacks ", call, ")");
    }
    CHECK_MESSAGE(looked_at > 1, each.folder);
  }
}

TEST_CASE("exemptions are needed and give a reason") {
  for (auto const& exempt : untested) {
    auto const& header = exempt.first;
    CHECK_MESSAGE(std::filesystem::exists(source_root / "include/lockstep" / header), header);
    CHECK_FALSE_MESSAGE(std::filesystem::exists(source_root / "tests" / test_of(std::string(header))), header);
    CHECK_MESSAGE(exempt.second.size() > 10, header);
  }
}

TEST_CASE("a header has at most 600 lines") {
  auto const headers = library_files();
  for (auto const& header : headers) {
    auto const lines = lines_of(source_root / "include/lockstep" / header).size();
    CHECK_MESSAGE(lines <= (long_headers.contains(header) ? 1000u : 600u), header, " has ", lines, " lines");
  }
  CHECK(headers.size() >= 9);
}
