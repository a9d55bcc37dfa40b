// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <lockstep/core/mix.hpp>
#include <lockstep/core/philox.hpp>

#include "fuzz/mutated.hpp"
#include "fuzz/targets.hpp"
#include "temporary_folder.hpp"

using namespace lockstep;
using namespace lockstep_test;

namespace {

#if defined(LOCKSTEP_ZSTD)
constexpr std::string_view needs_a_library;
#else
constexpr std::string_view needs_a_library = "zstd";
#endif

struct Input {
  std::string name, bytes;
};
/// The corpus of a format. Files named good... must be read, files named bad... must be refused.
std::vector<Input> corpus_of(FuzzTarget const& target) {
  std::vector<Input> out;
  for (auto const& entry : std::filesystem::directory_iterator(std::string(LOCKSTEP_SOURCE_DIR "/tests/fuzz/corpus/") +
                                                               std::string(target.name)))
    out.push_back({entry.path().filename().string(), read_file(entry.path().string())});
  std::sort(out.begin(), out.end(), [](auto const& a, auto const& b) { return a.name < b.name; });
  return out;
}

}  // namespace

TEST_CASE("every parser reads its good inputs, refuses its bad ones, and survives mutations of both") {
  int refused = 0;
  for (auto const& target : fuzz_targets()) {
    CAPTURE(target.name);
    auto const corpus = corpus_of(target);
    auto const count = [&](char const* kind) {
      return std::count_if(corpus.begin(), corpus.end(), [&](auto const& each) { return each.name.starts_with(kind); });
    };
    CHECK(count("good") >= 1);
    CHECK(count("bad") >= 1);
    CHECK(static_cast<std::size_t>(count("good") + count("bad")) == corpus.size());
    for (auto const& input : corpus) {
      CAPTURE(input.name);
      CHECK(parses(target, input.bytes) == input.name.starts_with("good"));
      for (std::uint64_t round = 0; round < 100; ++round)
        refused += !parses(target, mutated(input.bytes, Philox(mix(mix(target.name), mix(input.name), round))));
    }
  }
  CHECK(refused > 1000);
  // Each folder needs a parser, or its inputs would never be used; zstd's needs a library that may be missing.
  for (auto const& entry : std::filesystem::directory_iterator(LOCKSTEP_SOURCE_DIR "/tests/fuzz/corpus")) {
    auto const name = entry.path().filename().string();
    CHECK_MESSAGE((name == needs_a_library || std::any_of(fuzz_targets().begin(), fuzz_targets().end(),
                                                          [&](auto const& each) { return each.name == name; })),
                  name);
  }
}
