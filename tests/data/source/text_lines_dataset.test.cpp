// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/source/text_lines_dataset.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

#include <doctest/doctest.h>
#include <lockstep/data/combine/zip.hpp>

#include "../../temporary_folder.hpp"

using namespace lockstep;
using namespace lockstep_test;

static_assert(data::NamesSamples<data::TextLinesDataset> && data::HasFingerprint<data::TextLinesDataset>);

TEST_CASE("lines have their numbers, and empty lines are skipped") {
  TemporaryFolder const folder;
  write_file(folder / "a",
             "\xef\xbb\xbf"
             "one\r\n\n  \ntwo words \nlast");
  data::TextLinesDataset const lines(folder / "a");
  REQUIRE(lines.size() == 3);
  CHECK(lines.get(0) == "one");
  CHECK(lines.get(1) == "two words ");
  CHECK(lines.get(2) == "last");
  CHECK(lines.name(1) == folder / "a:4");
  CHECK_THROWS_WITH_AS(lines.refuse(1, "has 2 words"), (folder / "a:4: has 2 words").c_str(), DataError);
  auto const print = lines.fingerprint();
  write_file(folder / "a", "one\n\n  \ntwo wordz \nlast");
  CHECK(data::TextLinesDataset(folder / "a").fingerprint() != print);
  CHECK(lines.get(0) == "one");  // lines that were read stay valid
}

TEST_CASE("lines of a larger file are read on demand and are equal") {
  TemporaryFolder const folder;
  constexpr std::size_t block = std::size_t{1} << 16;  // size of one read
  for (std::size_t const length : {block - 5, block - 4, block - 3, block - 2, block - 1, block, 3 * block}) {
    std::string const longest(length, 'x');
    write_file(folder / "a", "\xef\xbb\xbf" + longest + "\r\n\n \r\ny\n\n" + longest);
    data::TextLinesDataset const held(folder / "a"), read(folder / "a", {.max_held_bytes = length});
    for (auto const& lines : {held, read}) {
      REQUIRE(lines.size() == 3);
      CHECK(lines.get(0) == longest);
      CHECK(lines.get(1) == "y");
      CHECK(lines.get(2) == longest);
      CHECK(lines.name(0) == folder / "a:1");
      CHECK(lines.name(1) == folder / "a:4");
      CHECK(lines.name(2) == folder / "a:6");
    }
    CHECK(held.fingerprint() == read.fingerprint());
    write_file(folder / "a", "z");
    CHECK_THROWS_WITH_AS(static_cast<void>(read.get(1)), doctest::Contains("a: ends at byte 1"), DataError);
    CHECK(held.get(1) == "y");
  }
}

TEST_CASE("blocks are the lines between blank lines, with the number of their first line") {
  TemporaryFolder const folder;
  constexpr std::size_t block = std::size_t{1} << 16;  // size of one read
  for (std::size_t const length : {std::size_t{1}, block - 4, block - 1, block, 3 * block}) {
    std::string const longest(length, 'x');
    write_file(folder / "a", "\xef\xbb\xbf\n \nA\tB-PER\r\nb\tO\r\n\t\n\n" + longest + "\n" + longest + "\n\nlast");
    data::TextLinesDataset const held(folder / "a", {.unit = data::TextUnit::block}),
        read(folder / "a", {.max_held_bytes = 0, .unit = data::TextUnit::block});
    for (auto const& blocks : {held, read}) {
      REQUIRE(blocks.size() == 3);
      CHECK(blocks.get(0) == "A\tB-PER\nb\tO");
      CHECK(blocks.get(1) == longest + "\n" + longest);
      CHECK(blocks.get(2) == "last");
      CHECK(blocks.name(0) == folder / "a:3");
      CHECK(blocks.name(1) == folder / "a:7");
      CHECK(blocks.name(2) == folder / "a:10");
    }
    CHECK(held.fingerprint() == read.fingerprint());
  }
  write_file(folder / "a", "one\ntwo\n\n\n");
  data::TextLinesDataset const one(folder / "a", {.unit = data::TextUnit::block});
  REQUIRE(one.size() == 1);
  CHECK(one.get(0) == "one\ntwo");
  write_file(folder / "blank", "\n \r\n\n");
  CHECK_THROWS_WITH_AS(data::TextLinesDataset(folder / "blank", {.unit = data::TextUnit::block}),
                       doctest::Contains("holds no line"), DataError);
}

TEST_CASE("every line is a sample with its number, blank ones included") {
  TemporaryFolder const folder;
  write_file(folder / "a",
             "\xef\xbb\xbf"
             "\none\r\n\r\n  \ntwo\n\n");
  for (std::uint64_t const held : {std::uint64_t{0}, std::uint64_t{1} << 20}) {
    data::TextLinesDataset const lines(folder / "a", {.max_held_bytes = held, .unit = data::TextUnit::every_line});
    REQUIRE(lines.size() == 6);
    std::string all;
    for (Index i = 0; i < lines.size(); ++i) all += lines.get(i) + "|";
    CHECK(all == "|one||  |two||");
    CHECK(lines.name(4) == folder / "a:5");
  }
  write_file(folder / "empty", "");
  CHECK_THROWS_WITH_AS(data::TextLinesDataset(folder / "empty", {.unit = data::TextUnit::every_line}),
                       doctest::Contains("holds no line"), DataError);
}

TEST_CASE("Zip refuses text files that leave out different blank lines") {
  TemporaryFolder const folder;
  auto const zip = [&](std::string const& first, std::string const& second, data::TextUnit unit) {
    write_file(folder / "a", first);
    write_file(folder / "b", second);
    return data::Zip{data::TextLinesDataset(folder / "a", {.unit = unit}),
                     data::TextLinesDataset(folder / "b", {.unit = unit})};
  };
  auto const refuses = [&](std::string const& first, std::string const& second, std::string const& why) {
    CHECK_THROWS_WITH_AS(zip(first, second, data::TextUnit::line), doctest::Contains(why.c_str()), DataError);
    CHECK(zip(first, second, data::TextUnit::every_line).name(2) == folder / "a:3 with " + (folder / "b:3"));
  };
  auto const a = folder / "a", b = folder / "b";
  refuses("a\n\nb\nc\n", "A\nB\nC\n\n", a + ":2: is blank and left out, but " + b + ":2 is not");
  refuses("a\nb\nc\n\n", "\nB\nC\nD\n", b + ":1: is blank and left out, but " + a + ":1 is not");
  refuses("a\n\n\nb\nc\n", "A\n\nB\n\nC\n", a + ":3: is blank and left out, but " + b + ":3 is not");
  refuses("\nb\nc\n\n", "\nB\nC\nD\n", a + ":4: is blank and left out, but " + b + ":4 is not");
  CHECK(zip("a\n\nb\n", "A\n \nB\n\n", data::TextUnit::line).size() == 2);  // of equal lines, and at the end
  CHECK(zip("a\nb\n\nc\n", "A\n\nB\n", data::TextUnit::block).size() == 2);
  CHECK_THROWS_WITH_AS(zip("a\nb\n\n", "A\n", data::TextUnit::line), doctest::Contains("2 samples and the second 1"),
                       ConfigError);
}

TEST_CASE("a line longer than 64 MiB is refused") {
  TemporaryFolder const folder;
  write_file(folder / "a", std::string((std::size_t{1} << 26) + 1, 'x'));
  CHECK_THROWS_WITH_AS(data::TextLinesDataset(folder / "a"),
                       doctest::Contains("a:1: the line is longer than 67108864 bytes"), DataError);
}

TEST_CASE("a missing file, a non-text file and an empty file are refused") {
  TemporaryFolder const folder;
  CHECK_THROWS_AS(data::TextLinesDataset(folder / "none"), DataError);
  write_file(folder / "zeros", std::string(10, '\0'));
  CHECK_THROWS_WITH_AS(data::TextLinesDataset(folder / "zeros"), doctest::Contains("is not text"), DataError);
  write_file(folder / "blank", "\n \r\n\n");
  CHECK_THROWS_WITH_AS(data::TextLinesDataset(folder / "blank"), doctest::Contains("holds no line"), DataError);
}

TEST_CASE("text that is not UTF-8 is refused with line, byte and remedy, or delivered as it is") {
  TemporaryFolder const folder;
  constexpr std::size_t block = std::size_t{1} << 16;  // size of one read, which may cut a character
  for (auto const length : {std::size_t{0}, block - 2, block - 1, block, 3 * block + 1}) {
    std::string const first(length, 'x'), good = "a\n" + first + "\xe4\xb8\xad\xf0\x9f\x98\x80\n\nb";
    write_file(folder / "a", good);
    data::TextLinesDataset const lines(folder / "a");
    CHECK(lines.get(1) == first + "\xe4\xb8\xad\xf0\x9f\x98\x80");
    for (std::string const bad : {"\xe9t\xe9\n", "\xe4\xb8", "\xed\xa0\x80"}) {
      write_file(folder / "a", good + bad);
      auto const message = "a:4: byte " + std::to_string(good.size()) +
                           " of the file is not UTF-8; name the encoding of the file (the option encoding, "
                           "--encoding of a program), such as latin-1 or windows-1252";
      for (std::uint64_t const held : {std::uint64_t{0}, std::uint64_t{1} << 20})
        CHECK_THROWS_WITH_AS(data::TextLinesDataset(folder / "a", {.max_held_bytes = held}),
                             doctest::Contains(message.c_str()), DataError);
      data::TextLinesDataset const bytes(folder / "a", {.encoding = "bytes"});
      CHECK(bytes.get(2) == "b" + bad.substr(0, bad.find('\n')));
    }
  }
}

TEST_CASE("text in another encoding is converted, with its lines") {
  using namespace std::string_literals;
  TemporaryFolder const folder;
  auto const lines = [&](std::string const& content, std::string const& encoding) {
    write_file(folder / "a", content);
    data::TextLinesDataset const held(folder / "a", {.encoding = encoding});
    data::TextLinesDataset const read(folder / "a", {.max_held_bytes = 0, .encoding = encoding});
    std::string out;
    for (Index i = 0; i < held.size(); ++i) {
      CHECK(held.get(i) == read.get(i));
      out += held.name(i).substr(folder.path().string().size() + 1) + "=" + held.get(i) + ";";
    }
    return out;
  };
  CHECK(lines("caf\xe9\n\n\xbf\r\n", "latin-1") == "a:1=caf\u00e9;a:3=\u00bf;");
  CHECK(lines("\x80 5\n", "windows-1252") == "a:1=\u20ac 5;");
  CHECK(lines("\x80 5\n", "ISO-8859-1") == "a:1=\xc2\x80 5;");
  CHECK(lines("\xff\xfeh\0\xac\x20\n\0i\0"s, "utf-16") == "a:1=h\u20ac;a:2=i;");
  CHECK(lines("\xfe\xff\0h\x20\xac\0\n\0i"s, "UTF-16") == "a:1=h\u20ac;a:2=i;");
  CHECK(lines("h\0\n\0\x3d\xd8\0\xde"s, "utf-16le") == "a:1=h;a:2=\U0001f600;");
  CHECK(lines("\xff\xfeh\0\n\0i\0"s, "utf-16le") == "a:1=h;a:2=i;");  // a byte order mark, which iconv keeps
  CHECK(lines("\x93\xfa\x96\x7b\n", "shift_jis") == "a:1=\u65e5\u672c;");
  CHECK(lines("cafe", "windows-1258") == "a:1=cafe;");  // iconv holds a letter back that an accent may follow
  CHECK(lines("caf\ne", "windows-1258") == "a:1=caf;a:2=e;");
  CHECK(lines("e\xec", "windows-1258") == "a:1=\u00e9;");
  CHECK(lines("\x82\xa9", "shift_jisx0213") == "a:1=\u304b;");
  CHECK(lines("\xef\xbb\xbf"
              "a\n",
              "utf-8-sig") == "a:1=a;");

  std::string const many(200000, '\xe9');  // characters whose halves parts of the conversion cut
  CHECK(lines(many + "\nz\n", "latin1").size() == 4 + 400000 + 1 + 6);
  std::string wide("\xff\xfe");
  for (int i = 0; i < 70001; ++i) wide += "\x3d\xd8\0\xde"s;
  CHECK(lines(wide, "utf-16").size() == 4 + 4 * 70001 + 1);

  auto const refused = [&](std::string const& content, std::string const& encoding) {
    write_file(folder / "a", content);
    std::string message;
    try {
      data::TextLinesDataset const set(folder / "a", {.encoding = encoding});
    } catch (Error const& error) {
      message = error.what();
    }
    return doctest::String(message.c_str());
  };
  CHECK(refused("a\nb\n\x81", "windows-1252") == doctest::Contains("a:3: byte 4 of the file is not windows-1252"));
  CHECK(refused("\xff\xfe"
                "a\0\n\0\x3d\xd8"s,
                "utf-16") == doctest::Contains("a:2: byte 6 of the file is not utf-16"));
  CHECK(refused("a\0\n\0"s, "utf-16") == doctest::Contains("with a byte order mark; give utf-16le or utf-16be"));
  CHECK(refused("\x1f\x8b\x08\0\0"s, "latin-1") == doctest::Contains("is compressed with gzip"));
  CHECK(refused("a\0b"s, "latin-1") == doctest::Contains("zero byte at offset 1"));
  CHECK(refused("a", "klingon") == doctest::Contains("iconv of this system cannot convert it to UTF-8"));
  CHECK(refused("a", "latin1//IGNORE") == doctest::Contains("is no name of an encoding"));
}
