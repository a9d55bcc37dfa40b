// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/source/line_stream.hpp>

#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <lockstep/data/source/text_lines_dataset.hpp>

#include "../../temporary_folder.hpp"

using namespace lockstep;
using namespace lockstep_test;

namespace {

std::string text(std::string_view line) {
  if (line == "bad") throw DataError("it is bad");
  return std::string(line);
}
template <class Lane>
std::vector<std::string> rest_of(Lane lane) {
  std::vector<std::string> out;
  while (auto line = lane.next()) out.push_back(*line);
  CHECK_FALSE(lane.next());  // it stays at its end
  return out;
}

}  // namespace

TEST_CASE("lane k reads every n-th file from file k, line by line") {
  TemporaryFolder const folder;
  write_file(folder / "a", "one\r\n\n \t\ntwo\n");
  write_file(folder / "b", "\xef\xbb\xbfthree");
  write_file(folder / "c", "");
  write_file(folder / "d", "\nfour\n");
  std::vector<std::string> const paths{folder / "a", folder / "b", folder / "c", folder / "d"};
  data::LineStream const one(paths, 1, text), two(paths, 2, text), four(paths, 4, text);
  static_assert(data::StreamDataset<decltype(one)>);
  CHECK(rest_of(one.lane(0, 0)) == std::vector<std::string>{"one", "two", "three", "four"});
  CHECK(rest_of(two.lane(0, 0)) == std::vector<std::string>{"one", "two"});
  CHECK(rest_of(two.lane(1, 5)) == std::vector<std::string>{"three", "four"});
  CHECK(rest_of(four.lane(2, 0)).empty());
}

TEST_CASE("lines longer than the read buffer and lines across its end") {
  TemporaryFolder const folder;
  constexpr std::size_t block = std::size_t{1} << 16;
  for (std::size_t const length : {block - 2, block - 1, block, block + 1, 3 * block}) {
    for (std::string const end : {"\n", "\r\n", ""}) {
      std::string const longest(length, 'x');
      write_file(folder / "a", longest + "\n" + "y\n" + longest + end);
      CHECK(rest_of(data::LineStream({folder / "a"}, 1, text).lane(0, 0)) ==
            std::vector<std::string>{longest, "y", longest});
    }
  }
}

TEST_CASE("a pipe is refused at once, and the lane resumes after it") {
  TemporaryFolder const folder;
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  write_file(folder / "a", "one\n");
  auto lane = data::LineStream({folder / "pipe", folder / "a"}, 1, text).lane(0, 0);
  CHECK_THROWS_WITH_AS(static_cast<void>(lane.next()), doctest::Contains("pipe: is not a regular file"), DataError);
  CHECK(lane.next() == "one");
}

TEST_CASE("files that are not text are refused by name, and the lane resumes after them") {
  TemporaryFolder const folder;
  using namespace std::string_literals;
  write_file(folder / "a.gz", "\x1f\x8b\x08\0\0\0\0\0"s);
  write_file(folder / "b.zst", "\x28\xb5\x2f\xfd text");
  write_file(folder / "c.utf16", "\xff\xfeh\0i\0\n\0"s);
  write_file(folder / "d.bin", "first\n" + std::string(70000, 'x') + "\0"s);
  write_file(folder / "e", "text\n");
  std::vector<std::string> paths;
  for (auto const* name : {"a.gz", "b.zst", "c.utf16", "d.bin", "e"}) paths.push_back(folder / name);
  auto lane = data::LineStream(paths, 1, text).lane(0, 0);
  auto const refused = [&](char const* why) {
    CHECK_THROWS_WITH_AS(static_cast<void>(lane.next()), doctest::Contains(why), DataError);
  };
  refused("a.gz: is not text (it is compressed with gzip); decompress it first");
  refused("b.zst: is not text (it is compressed with zstd)");
  refused("c.utf16: is not text (it is UTF-16, by its byte order mark); convert it to UTF-8");
  CHECK(lane.next() == "first");
  refused("d.bin: is not text (there is a zero byte at offset 70006)");
  CHECK(lane.next() == "text");
}

TEST_CASE("a failed read is reported by name, and the lane resumes after it") {
  TemporaryFolder const folder;
  write_file(folder / "a", "one\n\nbad\ntwo\n");
  write_file(folder / "c", "three\n");
  data::LineStream const stream({folder / "a", folder / "b", folder.path().string(), folder / "c"}, 1, text);
  auto lane = stream.lane(0, 0);
  CHECK(lane.next() == "one");
  CHECK_THROWS_WITH_AS(static_cast<void>(lane.next()), doctest::Contains("a:3: it is bad"), DataError);
  CHECK(lane.next() == "two");
  CHECK_THROWS_WITH_AS(static_cast<void>(lane.next()), doctest::Contains("b: cannot be opened"), DataError);
  CHECK_THROWS_WITH_AS(static_cast<void>(lane.next()), doctest::Contains("cannot be read"), DataError);  // a folder
  CHECK(lane.next() == "three");
  CHECK_FALSE(lane.next());
  CHECK_THROWS_WITH_AS(data::LineStream({folder / "a"}, 2, text), doctest::Contains("2 lanes for 1 files"),
                       ConfigError);
  CHECK_THROWS_AS(data::LineStream({folder / "a"}, 0, text), ConfigError);
}

TEST_CASE("a stream checks that its text is UTF-8, or converts it part by part") {
  using namespace std::string_literals;
  TemporaryFolder const folder;
  std::string const many(70000, '\xe9');
  write_file(folder / "a", "one\n" + many + "\n");
  write_file(folder / "b", "caf\xe9\n");
  data::LineStream const latin({folder / "a", folder / "b"}, 1, text, "latin-1");
  auto const lines = rest_of(latin.lane(0, 0));
  REQUIRE(lines.size() == 3);
  CHECK(lines[0] == "one");
  CHECK(lines[1].size() == 140000);
  CHECK(lines[2] == "caf\u00e9");
  CHECK(rest_of(data::LineStream({folder / "b"}, 1, text, "bytes").lane(0, 0)) == std::vector<std::string>{"caf\xe9"});
  auto lane = data::LineStream({folder / "a", folder / "b"}, 1, text).lane(0, 0);
  CHECK_THROWS_WITH_AS(static_cast<void>(lane.next()), doctest::Contains("a:2: byte 4 of the file is not UTF-8"),
                       DataError);
  CHECK_THROWS_WITH_AS(static_cast<void>(lane.next()), doctest::Contains("b:1: byte 3 of the file is not UTF-8"),
                       DataError);
  CHECK_FALSE(lane.next());
  write_file(folder / "c", "\xff\xfeh\0\n\0i\0"s);
  CHECK(rest_of(data::LineStream({folder / "c"}, 1, text, "utf-16").lane(0, 0)) == std::vector<std::string>{"h", "i"});
  // An index, which reads a converted copy, skips as many byte order marks.
  write_file(folder / "marks", "\xff\xfe\xff\xfe\xff\xfeh\0"s);
  auto const line = rest_of(data::LineStream({folder / "marks"}, 1, text, "utf-16").lane(0, 0)).at(0);
  CHECK(data::TextLinesDataset(folder / "marks", {.encoding = "utf-16"}).get(0) == line);
  CHECK_THROWS_AS(data::LineStream({folder / "a"}, 1, text, "klingon"), ConfigError);
}
