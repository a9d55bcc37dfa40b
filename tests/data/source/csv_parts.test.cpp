// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/source/detail/csv_parts.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include <lockstep/core/mix.hpp>
#include <lockstep/data/source/csv_dataset.hpp>

#include "temporary_folder.hpp"

using namespace lockstep;

namespace {

lockstep_test::TemporaryFolder const folder;

std::string put(std::string const& bytes) {
  lockstep_test::write_file(folder / "rows.csv", bytes);
  return folder / "rows.csv";
}

struct Pair {
  std::string first, second;
};

std::optional<data::detail::CsvIndex> by_parts(std::string const& path, std::size_t part_bytes, ThreadPool& pool) {
  data::detail::DataFile const file(path);
  return data::detail::CsvIndexer(file, ',', 2, nullptr, data::detail::Decoding::check, part_bytes).find(pool);
}

/// Returns the rows' offsets and the end of the last row, found by one thread that reads the file row by row.
std::optional<data::detail::CsvIndex> row_by_row(std::string const& bytes) {
  data::detail::CsvIndex out;
  std::string_view const text = bytes;
  for (std::size_t at = text.starts_with("\xef\xbb\xbf") ? 3 : 0; at < text.size();) {
    if (data::detail::csv_line_break(text, at) != 0) {
      ++at;
      continue;
    }
    out.begins.push_back(at);
    std::size_t columns = 0;
    auto end = data::detail::CsvField::End::separator;
    for (; end == data::detail::CsvField::End::separator; ++columns) {
      auto const field = data::detail::csv_field(text, at, ',');
      end = field.end;
      at = field.next;
    }
    if (end != data::detail::CsvField::End::row || columns != 2) return {};
    out.end = at;
  }
  if (out.begins.empty()) return {};
  return out;
}

/// Returns a CSV text of random parts: quotes, line breaks in quotes, doubled quotes, empty lines, quotes in plain
/// fields.
std::string random_text(std::uint64_t seed, int pieces, bool wrong) {
  static char const* const good[] = {"a,b\n",
                                     "\"x\",y\r\n",
                                     "\"p\nq\",r\n",
                                     "\n",
                                     "u,\"v\"\"w\"\n",
                                     "s\"t,\"\n\n\"\"\n\"\n",
                                     ",\n",
                                     "\"\",\"\"\n",
                                     "long plain field without quotes,another\n",
                                     "\"a\n,\n\",\"b,\n\"\r"};
  static char const* const bad[] = {"one\n", "a,b,c\n", "\"a\"b,c\n", "\"open,\n"};
  std::string out = seed % 5 == 0 ? "\xef\xbb\xbf" : "";
  for (int i = 0; i < pieces; ++i) {
    auto const draw = mix(seed, static_cast<std::uint64_t>(i));
    out += wrong && i == pieces / 2 ? bad[draw % 4] : good[draw % 10];
  }
  if (seed % 3 == 0) out += "last,line";
  return out;
}

}  // namespace

TEST_CASE("parts of any size and any number of threads find the rows that one thread finds") {
  ThreadPool one(1), three(3);
  int compared = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    auto const bytes = random_text(seed, 1 + static_cast<int>(seed % 17), false);
    auto const path = put(bytes);
    auto const expected = row_by_row(bytes);
    for (std::size_t const part : std::vector<std::size_t>{2, 5, 16, 33, 1000})
      for (auto* pool : {&one, &three}) {
        CAPTURE(bytes);
        CAPTURE(part);
        auto const found = by_parts(path, part, *pool);
        REQUIRE(found.has_value() == expected.has_value());
        if (!found) continue;
        CHECK(found->begins == expected->begins);
        CHECK(found->end == expected->end);
        ++compared;
      }
  }
  CHECK(compared > 400);
}

TEST_CASE("several threads index a file whose separators are tabs") {
  std::string bytes;
  for (int i = 0; i < 1000; ++i) bytes += "1\t2\n";
  data::detail::DataFile const file(put(bytes));
  ThreadPool pool(2);
  auto const found = data::detail::CsvIndexer(file, '\t', 2, nullptr, data::detail::Decoding::check, 512).find(pool);
  REQUIRE(found);
  CHECK(found->begins.size() == 1000);
}

TEST_CASE("a file with an invalid row is passed to the single thread that finds the exact error") {
  ThreadPool pool(2);
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    auto const bytes = random_text(seed, 9, true);
    CAPTURE(bytes);
    if (row_by_row(bytes)) continue;  // an open quote may close in a later part
    for (std::size_t const part : std::vector<std::size_t>{2, 7, 64}) CHECK_FALSE(by_parts(put(bytes), part, pool));
  }
  CHECK_FALSE(by_parts(put(""), 8, pool));
  CHECK_FALSE(by_parts(put("\n\n\n"), 2, pool));
  CHECK_FALSE(by_parts(put(std::string("a,b\nc,\0d\n", 9)), 4, pool));
}

TEST_CASE("a dataset indexed by several threads has the samples, errors and fingerprint of one indexed by one thread") {
  std::string bytes;
  for (int i = 0; i < 30000; ++i)
    bytes += "\"text " + std::to_string(i) + (i % 7 == 0 ? "\nline" : "") + "\",\"a \"\"word\"\" of " +
             std::string(static_cast<std::size_t>(i % 90), 'x') + "\"\n";
  auto const path = put(bytes);
  REQUIRE(bytes.size() > (std::size_t{2} << 20));
  for (std::uint64_t const held : {std::uint64_t{0}, std::uint64_t{1} << 30}) {
    data::CsvDataset<Pair> const alone(path, {.max_held_bytes = held});
    data::CsvDataset<Pair> const together(path, {.max_held_bytes = held, .threads = 3});
    REQUIRE(together.size() == 30000);
    for (Index i = 0; i < alone.size(); ++i) {
      auto const a = alone.get(i), b = together.get(i);
      REQUIRE(a.first == b.first);
      REQUIRE(a.second == b.second);
    }
    for (Index i : {29999, 0, 12345, 12346, 12347, 7, 20000}) CHECK(together.get(i).first == alone.get(i).first);
    CHECK(together.fingerprint() == alone.fingerprint());
  }
  auto const error = [&](int threads) -> std::string {
    try {
      data::CsvDataset<Pair> const rows(put(bytes + "\"one column\"\n" + bytes), {.threads = threads});
    } catch (DataError const& e) {
      return e.what();
    }
    return "no error";
  };
  CHECK(error(3) == error(1));
  CHECK(error(3).find("has 1 column, but 2") != std::string::npos);
}

TEST_CASE("several threads index named columns, with the samples, errors and fingerprint of one thread") {
  std::string const header = "\xef\xbb\xbf\r\nid,second,\"the \"\"first\"\"\"\r\n";
  std::string bytes = header;
  for (int i = 0; i < 30000; ++i)
    bytes += std::to_string(i) + ",\"a \"\"word\"\" of " + std::string(static_cast<std::size_t>(i % 90), 'x') +
             "\",\"text " + std::to_string(i) + (i % 7 == 0 ? "\nline" : "") + "\"\n";
  auto const path = put(bytes);
  REQUIRE(bytes.size() > (std::size_t{2} << 20));
  std::vector<std::string> const columns{"the \"first\"", "second"};
  for (std::uint64_t const held : {std::uint64_t{0}, std::uint64_t{1} << 30}) {
    data::CsvDataset<Pair> const alone(path, {.columns = columns, .max_held_bytes = held});
    auto* const log = std::tmpfile();
    Progress progress(log, 0);  // only the indexer of parts reports to it
    data::CsvDataset<Pair> const together(
        path, {.columns = columns, .max_held_bytes = held, .threads = 3, .progress = &progress});
    CHECK(progress.spoke());
    progress.end();
    std::fclose(log);
    REQUIRE(together.size() == 30000);
    for (Index i = 0; i < alone.size(); ++i) {
      auto const a = alone.get(i), b = together.get(i);
      REQUIRE(a.first == b.first);
      REQUIRE(a.second == b.second);
    }
    CHECK(together.get(12346).first == "text 12346");
    CHECK(together.fingerprint() == alone.fingerprint());
  }
  auto const error = [&](std::string const& text, int threads) -> std::string {
    try {
      data::CsvDataset<Pair> const rows(put(text), {.columns = columns, .threads = threads});
    } catch (DataError const& e) {
      return e.what();
    }
    return "no error";
  };
  for (auto const& text : {bytes + "one,\"two columns\"\n" + bytes, header, "a,b\n" + bytes, std::string("\n")})
    CHECK(error(text, 3) == error(text, 1));
  CHECK(error(bytes + "one,\"two columns\"\n", 3).find("has 2 columns, but 3, as the first line has") !=
        std::string::npos);
}
