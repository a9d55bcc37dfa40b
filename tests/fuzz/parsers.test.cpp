// SPDX-License-Identifier: Apache-2.0
#include "fuzz/heap_peak.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <lockstep/core/clock.hpp>
#include <lockstep/core/json.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/core/philox.hpp>
#include <lockstep/core/regular_file.hpp>
#include <lockstep/data/source/mds_dataset.hpp>
#include <lockstep/data/source/open_npy.hpp>
#include <lockstep/data/source/open_npz.hpp>
#include <lockstep/data/source/open_safetensors.hpp>
#include <lockstep/data/source/tar_dataset.hpp>
#include <lockstep/train/files/safetensors.hpp>

#include "fuzz/mutated.hpp"
#include "fuzz/targets.hpp"
#include "temporary_folder.hpp"

using namespace lockstep;
using namespace lockstep_test;

namespace {

/// Formats whose reader needs a library that this build lacks, or that only libFuzzer reads.
bool is_left_out(std::string_view format) {
  if (format == "trainer_state") return true;
#if !defined(LOCKSTEP_ZSTD)
  if (format == "zstd") return true;
#endif
#if !defined(LOCKSTEP_UTF8PROC)
  if (format == "byte_pair" || format == "word_piece") return true;
#endif
  return format.empty();
}

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

/// Returns `begin`, then `part` again and again, in a megabyte.
std::string megabyte_of(std::string begin, std::string_view part) {
  constexpr std::size_t bytes = 1'000'000;
  begin.reserve(bytes);
  while (begin.size() + part.size() <= bytes) begin += part;
  return begin;
}
/// Parts whose repetition makes a reader create many objects of few bytes, or one large object.
constexpr std::string_view parts[] = {"\n",    "a\n",   ",",        "\"",      "[",         "[0],",  "[],",
                                      "0,",    "\"\",", "{},",      "a",       "a,1,0.5\n", "\\n",   "a: 1\n",
                                      "- 1\n", "1 ",    "[[[0]]],", "0 0 a\n", "##a\n",     "{\"\":"};
/// Returns the first input that a part may follow: of a JSON text, the beginning of an array or of an object.
std::string_view beginning(std::string_view part) { return part.ends_with(',') && part != "," ? "[" : ""; }

/// Returns how far the heap grows while a target parses an input.
long heap_growth(FuzzTarget const& target, std::string_view input) {
  auto const before = heap_bytes.load();
  heap_peak = before;
  static_cast<void>(parses(target, input));
  return heap_peak - before;
}
/// Inputs for which readers take the most memory, by format.
std::vector<std::pair<std::string_view, std::string>> worst_inputs() {
  return {
      {"config", megabyte_of("", "a: 1\n")},
      {"csv", megabyte_of("", "a,1,0.5\n")},
      {"csv_columns", megabyte_of("", ",")},
      {"json", megabyte_of("[", "0,")},
      {"json", megabyte_of("[", "[[[0]]],")},
      {"json_lines", megabyte_of("[", "\"\",")},
      {"lines", megabyte_of("a", "\n")},
      {"mds", megabyte_of("[", "0,")},
      {"parameters", std::string("\x38\x42\x0f\0\0\0\0\0", 8) + megabyte_of("[", "0,")},
      {"safetensors", std::string("\x38\x42\x0f\0\0\0\0\0", 8) + megabyte_of("[", "0,")},
      {"tar_index", megabyte_of("", "512 3 a\n")},
      {"vocabulary", megabyte_of("", "a\n")},
  };
}
constexpr long most_growth = 64L << 20;  // for each file
/// Returns the number of files that hold a target's input: all nine signals of uci_har.
long files_of(FuzzTarget const& target) { return target.name == "uci_har" ? 9 : 1; }

}  // namespace

TEST_CASE("no reader takes more than 64 MiB for a file of a megabyte") {
  if (!measures_heap) return;
  for (auto const& worst : worst_inputs())  // all other parts are tried in the long form below
    for (auto const& target : fuzz_targets()) {
      if (target.name != worst.first) continue;
      CAPTURE(target.name);
      CHECK(heap_growth(target, worst.second) < most_growth);
    }
}

TEST_CASE("a file of some bytes that claims gigabytes is refused, and takes no memory") {
  TemporaryFolder const folder;
  auto const path = folder / "file";
  using namespace std::string_literals;
  auto const refused = [&](std::string const& head, std::uint64_t size, auto const& open) {
    write_file(path, head);
    std::filesystem::resize_file(path, size);
    auto const before = heap_bytes.load();
    heap_peak = before;
    CHECK_THROWS_AS(open(), DataError);
    CHECK(heap_peak - before < (8L << 20));
  };
  constexpr std::uint64_t large = std::uint64_t{6} << 30;
  auto const length = [](std::uint64_t bytes) {
    return std::string(reinterpret_cast<char const*>(&bytes), sizeof bytes);
  };
  for (std::uint64_t const claimed : {std::uint64_t{99'000'000}, std::uint64_t{5} << 30}) {
    refused(length(claimed) + "{", large, [&] { static_cast<void>(data::open_safetensors(path, "x")); });
    refused(length(claimed) + "{", large, [&] { static_cast<void>(train::load_text(path, "x")); });
  }
  refused("\x93NUMPY\2\0\0\0\0\xf0{"s, large, [&] { static_cast<void>(data::open_npy(path)); });
  auto const tar_header = [](char type, char const* bytes) {
    std::string header(512, '\0');
    header.replace(0, 4, "name").replace(124, 11, bytes).replace(148, 8, 8, ' ');
    header[156] = type;
    std::uint64_t sum = 0;
    for (char const c : header) sum += static_cast<unsigned char>(c);
    for (std::size_t i = 6; i-- > 0; sum /= 8) header[148 + i] = static_cast<char>('0' + sum % 8);
    return header;
  };
  for (char const type : {'L', 'K', 'x'})  // a long name of 5 GiB, of GNU tar and of pax
    refused(tar_header(type, "50000000000"), std::uint64_t{8} << 30,
            [&] { data::TarDataset(path, data::TarIndex::memory); });
  // An index of 6 GiB that begins and ends as the right one does.
  auto const archive = folder / "a.tar", index = archive + ".index";
  write_file(archive, tar_header('0', "00000000000") + std::string(1024, '\0'));
  CHECK(data::TarDataset(archive).size() == 1);
  auto const right = read_file(index);
  write_file(index, right.substr(0, right.find('\n') + 1));
  std::filesystem::resize_file(index, large);
  std::ofstream(index, std::ios::binary | std::ios::app) << "\nend\n";
  auto const with_index = heap_bytes.load();
  heap_peak = with_index;
  CHECK_THROWS_WITH_AS(data::TarDataset{archive}, doctest::Contains("is damaged; remove it"), DataError);
  CHECK(heap_peak - with_index < (8L << 20));
  refused("{", large, [&] { static_cast<void>(json::parse(read_text_file(path, large), path)); });
  // A shard with a table of 2^28 samples, in its folder.
  write_file(folder / "index.json",
             R"({"version":2,"shards":[{"version":2,"format":"mds","compression":null,"raw_data":{"basename":"file"},)"
             R"("samples":268435456,"column_names":["x"],"column_encodings":["str"],"column_sizes":[null]}]})");
  refused("\0\0\0\x10\x08\0\0\x40"s, large, [&] { data::MdsDataset(folder.path().string()); });
  // A directory of a zip archive of 5 GiB, by Zip64.
  std::string const end = "PK\6\6"s + std::string(36, '\0') + length(std::uint64_t{5} << 30) + length(100) +
                          "PK\6\7\0\0\0\0"s + length(large) + "\1\0\0\0"s + "PK\5\6"s + std::string(18, '\xff');
  write_file(path, "");
  std::filesystem::resize_file(path, large);
  std::ofstream(path, std::ios::binary | std::ios::app) << end.substr(0, end.size() - 2) + "\0\0"s;
  auto const before = heap_bytes.load();
  heap_peak = before;
  CHECK_THROWS_AS(static_cast<void>(data::open_npz(path, "x")), DataError);
  CHECK(heap_peak - before < (8L << 20));
}

/// The long form, for `./dev check fuzz` without libFuzzer: LOCKSTEP_FUZZ_SECONDS of mutations, for each format.
TEST_CASE("mutations for as long as requested") {
  char const* const seconds = std::getenv("LOCKSTEP_FUZZ_SECONDS");
  if (seconds == nullptr) return;
  char const* const chosen = std::getenv("LOCKSTEP_FUZZ");
  auto const worst = worst_inputs();
  long all = 0;
  for (auto const& target : fuzz_targets()) {
    if (chosen != nullptr && target.name != chosen) continue;
    CAPTURE(target.name);
    auto const corpus = corpus_of(target);
    long most = 0;
    for (auto const& [name, input] : worst)
      if (name == target.name) most = std::max(most, heap_growth(target, input));
    for (auto const part : parts) {
      for (auto const& input : corpus) most = std::max(most, heap_growth(target, megabyte_of(input.bytes, part)));
      most = std::max(most, heap_growth(target, megabyte_of(std::string(beginning(part)), part)));
      CAPTURE(part);
      CHECK((!measures_heap || most < files_of(target) * most_growth));
    }
    long inputs = 0;
    auto const seed = mix(static_cast<std::uint64_t>(Clock::nanoseconds()));
    for (auto const until = Clock::seconds() + std::atof(seconds); Clock::seconds() < until;)
      for (auto const& input : corpus) {
        auto bytes = input.bytes;
        for (std::uint64_t round = 0; round < 16; ++round, ++inputs) {
          CAPTURE(inputs);
          bytes = mutated(round % 4 == 0 ? input.bytes : bytes, Philox(mix(seed, static_cast<std::uint64_t>(inputs))));
          static_cast<void>(parses(target, bytes));
        }
      }
    all += inputs;
    std::printf("%-14s %ld inputs", std::string(target.name).c_str(), inputs);
    if (measures_heap) {
      std::printf("; at most %.1f MiB for a megabyte", static_cast<double>(most) / (1 << 20));
      if (files_of(target) > 1) std::printf(" in each of %ld files", files_of(target));
    }
    std::printf("\n");
  }
  std::printf("%-14s %ld inputs\n", "all", all);
}

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
    auto const rounds = std::uint64_t{600} / corpus.size();
    for (auto const& input : corpus) {
      CAPTURE(input.name);
      CHECK(parses(target, input.bytes) == input.name.starts_with("good"));
      for (std::uint64_t round = 0; round < rounds; ++round)
        refused += !parses(target, mutated(input.bytes, Philox(mix(mix(target.name), mix(input.name), round))));
    }
  }
  CHECK(refused > 1000);
  // Each folder needs a parser, or its inputs would never be used; some need a library that may be missing.
  for (auto const& entry : std::filesystem::directory_iterator(LOCKSTEP_SOURCE_DIR "/tests/fuzz/corpus")) {
    auto const name = entry.path().filename().string();
    CHECK_MESSAGE((is_left_out(name) || std::any_of(fuzz_targets().begin(), fuzz_targets().end(),
                                                    [&](auto const& each) { return each.name == name; })),
                  name);
  }
}
