// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/source/csv_dataset.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <rapidcheck.h>
#include <lockstep/data/combine/concat.hpp>

#include "../../skip.hpp"
#include "../../temporary_folder.hpp"
#include "../../unprivileged.hpp"

using namespace lockstep;

namespace {

struct News {
  int label = 0;
  std::string title, text;
};
struct Review {
  std::string text, sentiment;
};
struct Numbers {
  std::int8_t small = 0;
  std::uint64_t large = 0;
  double real = 0;
  bool flag = false;
};
struct Single {
  std::string text;
};

lockstep_test::TemporaryFolder const folder;

/// Creates a file with these bytes and returns its path.
std::string put(std::string const& name, std::string const& bytes) {
  lockstep_test::write_file(folder / name, bytes);
  return folder / name;
}

/// Compares a table in memory with the one read from its file row by row: they must be equal.
template <class Row>
struct BothWays {
  data::CsvDataset<Row> held, read;

  BothWays(std::string const& path, data::CsvOptions options) : held(path, options), read(path, from_disk(options)) {
    CHECK(held.size() == read.size());
    CHECK(held.fingerprint() == read.fingerprint());
  }
  static data::CsvOptions from_disk(data::CsvOptions options) {
    options.max_held_bytes = 0;
    return options;
  }
  [[nodiscard]] Index size() const { return held.size(); }
  [[nodiscard]] Row get(Index i) const {
    auto a = held.get(i), b = read.get(i);
    CHECK(data::members(a) == data::members(b));
    return a;
  }
};

template <class Row>
BothWays<Row> table(std::string const& content, data::CsvOptions options = {}) {
  return {put("rows.csv", content), options};
}

/// Returns the error message of such a file, from construction or from reading all rows.
template <class Row>
std::string error_in(std::string const& path, data::CsvOptions options) {
  try {
    data::CsvDataset<Row> const rows(path, options);
    for (Index i = 0; i < rows.size(); ++i) static_cast<void>(rows.get(i));
  } catch (DataError const& error) {
    return error.what();
  }
  return "no error";
}
template <class Row = News>
doctest::String error_of(std::string const& content, data::CsvOptions options = {}) {
  auto const path = put("rows.csv", content);
  auto const held = error_in<Row>(path, options), read = error_in<Row>(path, BothWays<Row>::from_disk(options));
  CHECK(held == read);
  return held.c_str();
}

std::string in_quotes(std::string const& field) {
  std::string out = "\"";
  for (char c : field) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

}  // namespace

TEST_CASE("quoted fields, doubled quotes, separators and line breaks inside quotes") {
  auto const rows = table<News>("\"4\",\"A \"\"B\"\"\",\"line 1\nline 2, still\r\n\"\n3,plain,\"\"\n2,\"\"\"\",last");
  REQUIRE(rows.size() == 3);
  CHECK(rows.get(0).label == 4);
  CHECK(rows.get(0).title == "A \"B\"");
  CHECK(rows.get(0).text == "line 1\nline 2, still\r\n");
  CHECK(rows.get(1).title == "plain");
  CHECK(rows.get(1).text.empty());
  CHECK(rows.get(2).title == "\"");
  CHECK(rows.get(2).text == "last");
}

TEST_CASE("line ends, a byte order mark, empty lines and a missing last line end make no difference") {
  for (std::string const content : {"1,a,b\n2,c,d\n", "1,a,b\r\n2,c,d\r\n", "1,a,b\n2,c,d",
                                    "\xef\xbb\xbf"
                                    "1,a,b\n2,c,d\n",
                                    "\n1,a,b\n\n\r\n2,c,d\n\n", "1,a,b\r2,c,d\r"}) {
    auto const rows = table<News>(content);
    REQUIRE(rows.size() == 2);
    CHECK(rows.get(0).label == 1);
    CHECK(rows.get(1).label == 2);
    CHECK(rows.get(1).text == "d");
  }
}

TEST_CASE("headers: automatic, none and first line") {
  std::string const with = "class,title,text\n1,a,b\n", without = "1,a,b\n2,c,d\n";
  CHECK(table<News>(with).size() == 1);
  CHECK(table<News>(without).size() == 2);
  CHECK(table<News>(without, {.header = data::CsvHeader::first_line}).size() == 1);
  CHECK(error_of(with, {.header = data::CsvHeader::none}) ==
        doctest::Contains(":1: column 1: expected a whole number, found \"class\""));
  CHECK(table<Review>("review,sentiment\ngood,positive\n").size() == 2);  // names look like a sample
  CHECK(table<Review>("review,sentiment\ngood,positive\n", {.header = data::CsvHeader::first_line}).size() == 1);
  CHECK(table<News>("99999999999,a,b\n").size() == 1);  // a number out of range is not a name
  CHECK(error_of("class,title,text\n") == doctest::Contains("holds a header and no rows"));
  data::CsvOptions const parts{.may_be_empty = true};
  CHECK(table<News>("class,title,text\n", parts).size() == 0);
  data::Concat const both{std::vector{data::CsvDataset<News>(put("none.csv", "class,title,text\n"), parts),
                                      data::CsvDataset<News>(put("one.csv", with), parts)}};
  REQUIRE(both.size() == 1);
  CHECK(both.get(0).title == "a");
}

TEST_CASE("numbers of every kind") {
  auto const rows = table<Numbers>("-128,18446744073709551615, 2.5e-3 ,true\n127,0,-1,0\n");
  CHECK(rows.get(0).small == -128);
  CHECK(rows.get(0).large == 18446744073709551615u);
  CHECK(rows.get(0).real == 2.5e-3);
  CHECK(rows.get(0).flag);
  CHECK(!rows.get(1).flag);
  CHECK(error_of<Numbers>("1,1,1,1\n128,0,0,0\n") ==
        doctest::Contains(":2: column 1: expected a whole number, found \"128\", which is out of range"));
  CHECK(error_of<Numbers>("1,1,1,1\n1,-1,0,0\n") ==
        doctest::Contains("column 2: expected a whole number, found \"-1\""));
  CHECK(error_of<Numbers>("1,1,1,1\n1,1,1.x,0\n") == doctest::Contains("column 3: expected a number, found \"1.x\""));
  CHECK(error_of<Numbers>("1,1,1,1\n1,1,1,yes\n") ==
        doctest::Contains("column 4: expected 0, 1, true or false, found \"yes\""));
  CHECK(error_of<Numbers>("1,1,1,1\n1,1,,0\n") ==
        doctest::Contains("column 3: expected a number, found \"\"; fill the field, or make the member a "
                          "std::optional number"));
  CHECK(error_of<Numbers>("1,1,1,1\n1.5,1,1,0\n") ==
        doctest::Contains("column 1: expected a whole number, found \"1.5\""));
}

TEST_CASE("an array takes as many columns as it has elements, from a file with many columns") {
  struct Wide {
    std::array<float, 20> measured{};
    std::string name;
    std::array<std::string, 2> notes;
    int label = 0;
  };
  std::string header, row;
  for (int i = 0; i < 20; ++i) header += "m" + std::to_string(i) + ",", row += std::to_string(i) + ".5,";
  auto const rows = table<Wide>(header + "name,a,b,label\n" + row + "x,\"y,\",z,7\n");
  REQUIRE(rows.size() == 1);
  auto const wide = rows.get(0);
  CHECK(wide.measured[0] == 0.5f);
  CHECK(wide.measured[19] == 19.5f);
  CHECK(wide.name == "x");
  CHECK(wide.notes[0] == "y,");
  CHECK(wide.notes[1] == "z");
  CHECK(wide.label == 7);
  CHECK(error_of<Wide>("1,2\n") ==
        doctest::Contains(":1: has 2 columns, but 24 (20 x number, text, 2 x text, number) were expected"));
  CHECK(error_of<Wide>(row + "x,y,z,7\n0,0,?,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,x,y,z,7\n") ==
        doctest::Contains(":2: column 3: expected a number, found \"?\""));
}

TEST_CASE("a number may be missing") {
  struct House {
    std::string town;
    std::optional<float> area;
    std::optional<int> year;
    std::array<std::optional<bool>, 2> flags;
  };
  auto const rows = table<House>("town,area,year,new,sold\nUlm,80.5,,1,\n,, ,,0\n");
  REQUIRE(rows.size() == 2);
  CHECK(rows.get(0).area == 80.5f);
  CHECK(!rows.get(0).year);
  CHECK(rows.get(0).flags[0] == true);
  CHECK(!rows.get(0).flags[1]);
  CHECK(!rows.get(1).area);
  CHECK(!rows.get(1).year);
  CHECK(rows.get(1).flags[1] == false);
  CHECK(table<House>("Ulm,,,,\n").size() == 1);  // names cannot be empty, so this is a sample
  CHECK(error_of<House>("Ulm,1,,,\nUlm,,19x,,\n") ==
        doctest::Contains(":2: column 3: expected a whole number, found \"19x\""));
  CHECK(error_of<House>("Ulm,1,,,\nUlm,NA,,,\n") == doctest::Contains(":2: column 2: expected a number, found \"NA\""));
}

TEST_CASE("marks of missing numbers are configurable; NaN counts as missing by default") {
  struct House {
    std::optional<float> area;
    std::optional<int> year;
  };
  data::CsvOptions const options{.missing = {"NA", "?"}};
  auto const rows = table<House>("area,year\nNaN,1990\nNA,?\n-nan,\ninf,7\n", options);
  REQUIRE(rows.size() == 4);
  CHECK(!rows.get(0).area);
  CHECK(rows.get(0).year == 1990);
  CHECK(!rows.get(1).area);
  CHECK(!rows.get(1).year);
  CHECK(!rows.get(2).area);
  CHECK(rows.get(3).area == std::numeric_limits<float>::infinity());
  CHECK(table<House>("NA,?\n1,2\n", options).size() == 2);  // a sample, no header
  CHECK(error_of<House>("area,year\nNA,N/A\n", options) ==
        doctest::Contains(":2: column 2: expected a whole number, found \"N/A\""));
  struct Plain {
    float area;
  };
  CHECK(error_of<Plain>("area\nNA\n", options) == doctest::Contains(":2: column 1: expected a number, found \"NA\""));
}

TEST_CASE("a field can hold a list of numbers or of texts") {
  struct Basket {
    int user = 0;
    std::vector<std::int64_t> items;
    std::vector<std::string> genres;
  };
  data::CsvOptions const options{.list_separator = '|'};
  auto const rows =
      table<Basket>("user,items,genres\n1,3|17| -5 ,Action|Sci-Fi & more\n2,,\n3,7,\"a \"\"b\"\"||c\"\n", options);
  REQUIRE(rows.size() == 3);
  CHECK(rows.get(0).items == std::vector<std::int64_t>{3, 17, -5});
  CHECK(rows.get(0).genres == std::vector<std::string>{"Action", "Sci-Fi & more"});
  CHECK(rows.get(1).items.empty());
  CHECK(rows.get(1).genres.empty());
  CHECK(rows.get(2).items == std::vector<std::int64_t>{7});
  CHECK(rows.get(2).genres == std::vector<std::string>{"a \"b\"", "", "c"});

  struct Ids {
    std::vector<int> ids;
    std::vector<bool> flags;
    std::array<std::vector<float>, 2> parts;
  };
  auto const ids = table<Ids>("3 17  5 ,1 0 true,0.5 1e3,\n");
  REQUIRE(ids.size() == 1);
  CHECK(ids.get(0).ids == std::vector<int>{3, 17, 5});
  CHECK(ids.get(0).flags == std::vector<bool>{true, false, true});
  CHECK(ids.get(0).parts[0] == std::vector<float>{0.5f, 1000});
  CHECK(ids.get(0).parts[1].empty());
  CHECK(table<Ids>("ids,flags,a,b\n1,,,\n").size() == 1);  // a header

  CHECK(error_of<Ids>("1,,,\n1 2 x,,,\n") ==
        doctest::Contains(":2: column 1: expected a list, each a whole number, found \"1 2 x\""));
  CHECK(error_of<Ids>("1,,,\n1|2,,,\n") == doctest::Contains("or set CsvOptions::list_separator"));
  CHECK(error_of<Basket>("1,3||4,\n", options) == doctest::Contains("column 2: expected a list"));
  CHECK(error_of<Basket>("1,2\n") == doctest::Contains("3 (number, list of numbers, list of texts)"));
}

TEST_CASE("columns are selected by name, in any order and from a wider table") {
  struct Sale {
    std::string town;
    std::array<float, 2> sizes{};
    std::optional<int> year;
  };
  data::CsvOptions const options{.columns = {"town", "area", "garden", "year"}};
  auto const rows = table<Sale>("year,\"garden\",note,area,town\n1990,5,\"a,\nb\",80,Ulm\n,6,,90,Bonn\n", options);
  REQUIRE(rows.size() == 2);
  CHECK(rows.get(0).town == "Ulm");
  CHECK(rows.get(0).sizes == std::array<float, 2>{80, 5});
  CHECK(rows.get(0).year == 1990);
  CHECK(rows.get(1).town == "Bonn");
  CHECK(rows.get(1).sizes == std::array<float, 2>{90, 6});
  CHECK(!rows.get(1).year);

  CHECK(error_of<Sale>("year,garden,size,town\n1,2,3,Ulm\n", options) ==
        doctest::Contains(
            ":1: no column is named \"area\"; the first line has \"year\", \"garden\", \"size\", \"town\""));
  CHECK(error_of<Sale>("area,year,garden,area,town\n1,2,3,4,Ulm\n", options) ==
        doctest::Contains(":1: two columns are named \"area\""));
  CHECK(error_of<Sale>("year,garden,area,town\n1,2,3,Ulm\n1,2,3\n", options) ==
        doctest::Contains(":3: has 3 columns, but 4, as the first line has, were expected"));
  CHECK(error_of<Sale>("year,garden,area,town\n1,2,x,Ulm\n", options) ==
        doctest::Contains(":2: column 3: expected a number, found \"x\""));
  CHECK(error_of<Sale>("year,garden,area,town\n", options) == doctest::Contains("holds a header and no rows"));
  CHECK_THROWS_WITH_AS(table<Sale>("a,b\n", {.columns = {"a", "b"}}),
                       doctest::Contains("has 2 names, and the row type 4 columns (text, 2 x number, number)"),
                       ConfigError);
}

TEST_CASE("blanks as the separator: several count as one, and those at the ends of a line as none") {
  struct State {
    float time, angle;
    std::string phase;
  };
  std::string const content = "  t     angle phase\n  0.0   1e-1  up  \n 10.5\t -2 \"to  rest\"\n\n100 0.25 down";
  for (int const threads : {1, 2}) {
    auto const states = table<State>(content, {.separator = ' ', .threads = threads});
    REQUIRE(states.size() == 3);
    CHECK(states.get(0).time == 0);
    CHECK(states.get(0).angle == 0.1f);
    CHECK(states.get(0).phase == "up");
    CHECK(states.get(1).angle == -2);
    CHECK(states.get(1).phase == "to  rest");
    CHECK(states.get(2).time == 100);
    CHECK(states.get(2).phase == "down");
  }
  CHECK(table<State>(content, {.separator = ' ', .max_held_bytes = 0}).get(2).angle == 0.25f);
  struct Angle {
    float angle;
  };
  CHECK(table<Angle>(content, {.separator = ' ', .columns = {"angle"}}).get(1).angle == -2);
  CHECK(error_of("1 2 3 4\n", {.separator = ' '}) == doctest::Contains("has 4 columns"));
}

TEST_CASE("lines of comments are skipped on request, whatever they hold and wherever they are") {
  std::string const noted = "# by \"savetxt\nlabel,title,text\n#\n1,a,\"b\n# in quotes\"\r\n#2,c,d\r\n\n# " +
                            std::string(200'000, 'x') + "\n3,#e,f\n# last";
  auto const path = put("comments.csv", noted);
  auto const check = [](data::CsvDataset<News> const& rows) {
    REQUIRE(rows.size() == 2);
    CHECK(rows.get(0).text == "b\n# in quotes");
    CHECK(rows.get(1).label == 3);
    CHECK(rows.get(1).title == "#e");
    CHECK(rows.get(1).text == "f");
  };
  for (int const threads : {1, 3}) {
    BothWays<News> const both(path, {.comment = '#', .threads = threads});
    check(both.held);
    check(both.read);
    check(data::CsvDataset<News>(path, {.columns = {"label", "title", "text"}, .comment = '#', .threads = threads}));
  }
  CHECK(data::CsvDataset<Single>(put("one.csv", "# x\n% y\nz"), {.comment = '%'}).size() == 2);
  CHECK_THROWS_WITH_AS(data::CsvDataset<Single>(put("none.csv", "# x\n# y"), {.comment = '#'}),
                       doctest::Contains("none.csv: holds no rows"), DataError);
  for (char const sign : {',', '"'})
    CHECK_THROWS_WITH_AS(data::CsvDataset<Single>(path, {.comment = sign}),
                         doctest::Contains("as the separator or a quote; use another, such as '#'"), ConfigError);
}

TEST_CASE("an error in a line that looks like a comment names the option") {
  auto const remedy = "; if lines that begin with # are comments, set CsvOptions::comment to '#'";
  CHECK_THROWS_WITH_AS(data::CsvDataset<News>(put("a.csv", "1,a,b\n# made by hand\n2,c,d")),
                       doctest::Contains((std::string("or change the row type") + remedy).c_str()), DataError);
  data::CsvDataset<News> const rows(put("b.csv", "1,a,b\n#2,c,d"));
  CHECK_THROWS_WITH_AS(static_cast<void>(rows.get(1)), doctest::Contains(remedy), DataError);
  data::CsvDataset<News> const others(put("c.csv", "1,a,b\nx,#c,d"));
  try {
    static_cast<void>(others.get(1));
    CHECK(false);
  } catch (DataError const& error) {
    CHECK(std::string(error.what()).find("comment") == std::string::npos);
  }
}

TEST_CASE("another separator, and a row of one column") {
  CHECK(table<News>("1\ta,b\tc\n", {.separator = '\t'}).get(0).title == "a,b");
  auto const lines = table<Single>("one\n\"two\nlines\"\nthree\n");
  REQUIRE(lines.size() == 3);
  CHECK(lines.get(1).text == "two\nlines");
}

TEST_CASE("rows may begin and end anywhere in the read buffer") {
  std::string const rows = "1,\"b \"\"c\"\",\r\n\",d\r\n\r\n\r2,e,\"\"\n";
  constexpr std::size_t block = std::size_t{1} << 16;
  for (std::size_t shift = 0; shift <= rows.size(); ++shift) {
    auto const first = "0,x," + std::string(block - shift - 5, 'y') + "\n";
    auto const read = table<News>(first + rows + std::string(first).replace(0, 1, "3"));
    REQUIRE(read.size() == 4);
    CHECK(read.get(0).text.size() == block - shift - 5);
    CHECK(read.get(1).title == "b \"c\",\r\n");
    CHECK(read.get(1).text == "d");
    CHECK(read.get(2).label == 2);
    CHECK(read.get(2).text.empty());
    CHECK(read.get(3).label == 3);
    CHECK(error_of(first + rows + "4,\"never closed") == doctest::Contains("rows.csv:6: a quoted field begins here"));
  }
  auto const longest = table<News>("1,a,\"" + std::string(5 * block, '\n') + "\"\n2,b,c\n");
  CHECK(longest.get(0).text == std::string(5 * block, '\n'));
  CHECK(longest.get(1).text == "c");
}

TEST_CASE("a file that changes while its rows are read causes an error that names it") {
  auto const path = put("changing.csv", "1,a,b\n2,c,d\n3,e,f\n");
  data::CsvDataset<News> const rows(path, {.max_held_bytes = 0}), held(path);
  put("changing.csv", "1,a,b\n2,cd,\n3,e,f\n");
  CHECK(rows.get(1).title == "cd");
  auto const error = [&](std::string const& content) -> doctest::String {
    put("changing.csv", content);
    try {
      static_cast<void>(rows.get(1));
    } catch (DataError const& e) {
      return e.what();
    }
    return "no error";
  };
  CHECK(error("1,a,b\n2,c-d\n3,e,f\n") == doctest::Contains("changing.csv:2: has another number of columns than when"));
  CHECK(error("1,a,b\n2,,,d\n3,e,f\n") == doctest::Contains("changing.csv:2: has another number of columns than when"));
  CHECK(error("1,a,b\n2,\"d\n\n3,e,f\n") == doctest::Contains("changing.csv:2: a quoted field begins here"));
  CHECK(error("1,a,b\n2,") == doctest::Contains("changing.csv: ends at byte 8"));
  CHECK(held.get(1).title == "c");
}

TEST_CASE("the wrong number of columns is reported with the line on which the row begins") {
  CHECK(error_of("1,\"a\nb\",c\n2,d\n") ==
        doctest::Contains(":3: has 2 columns, but 3 (number, text, text) were expected"));
  CHECK(error_of("1,a,b,c\n") == doctest::Contains(":1: has 4 columns, but 3"));
  CHECK(error_of("1,a,b\nword\n") == doctest::Contains(":2: has 1 column, but 3"));
}

TEST_CASE("each of many unreadable rows is reported with its line") {  // minutes, if each counted from the start
  std::string bytes;
  for (int i = 0; i < 40000; ++i) bytes += "word,\"a\nb\",c\n";
  BothWays<News> const rows(put("wrong.csv", bytes), {.header = data::CsvHeader::none});
  for (auto const* each : {&rows.held, &rows.read})
    for (Index i = each->size(); i-- > 0;) {
      std::string error_message;
      try {
        static_cast<void>(each->get(i));
      } catch (DataError const& error) {
        error_message = error.what();
      }
      REQUIRE(error_message.find(".csv:" + std::to_string(2 * i + 1) + ": column 1: ") != std::string::npos);
    }
}

TEST_CASE("unclosed quotes and text after a quote are refused") {
  CHECK(error_of("1,a,b\n2,\"c,d\n3,e,f\n") ==
        doctest::Contains(":2: a quoted field begins here and never ends: \"\"c,d"));
  CHECK(error_of("1,a,\"b") == doctest::Contains(":1: a quoted field begins here and never ends"));
  CHECK(error_of("1,a,\"b\"\"") == doctest::Contains("never ends"));
  CHECK(error_of("1,\"a\"b,c\n") == doctest::Contains(":1: a quoted field ends and text follows: \"b,c"));
}

TEST_CASE("a message about a wrong name quotes at most twenty of the file's columns") {
  std::string names = "c0";
  for (int i = 1; i < 3000; ++i) names += ",column" + std::to_string(i);
  auto const path = put("wide.csv", names + "\n");
  try {
    data::CsvDataset<News>(path, {.columns = {"a", "b", "c"}});
    FAIL("no error");
  } catch (DataError const& error) {
    std::string const message = error.what();
    CHECK(message.size() <= 1000);
    CHECK(message.find("no column is named \"a\"; the first line has \"c0\", \"column1\"") != std::string::npos);
    CHECK(message.find("\"column19\" and 2980 other columns; correct the name") != std::string::npos);
  }
}

TEST_CASE("a file that is not CSV is refused with a one-line message") {
  auto const error = [](std::string const& path) -> doctest::String {
    try {
      data::CsvDataset<News> const rows{path};
    } catch (DataError const& e) {
      return e.what();
    }
    return "no error";
  };
  CHECK(error(folder / "absent.csv") == doctest::Contains("absent.csv: cannot be opened: No such file"));
  CHECK(error(folder / "") == doctest::Contains("is a directory; give a file in it"));
  CHECK(error("/dev/null") == doctest::Contains("/dev/null: is not a regular file"));
  auto const pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  // returns at once, although there is no writer
  CHECK(error(pipe) == doctest::Contains("pipe: is not a regular file"));
  CHECK(error(put("empty.csv", "")) == doctest::Contains("empty.csv: holds no rows"));
  CHECK(error(put("blank.csv", "\n\r\n\n")) == doctest::Contains("blank.csv: holds no rows"));
  CHECK(error(put("zero.csv", std::string("1,a,b\n2,c\0,d\n", 13))) ==
        doctest::Contains("is not text (there is a zero byte at offset 9)"));
  std::mt19937 random(1);
  std::string noise;
  for (int i = 0; i < 4096; ++i) noise += static_cast<char>(1 + random() % 255);
  CHECK(error(put("noise.csv", noise)) == doctest::Contains("bytes are control characters"));
  for (auto const& message : {error(folder / "absent.csv"), error(put("noise.csv", noise)), error_of("1,\"a\nb")}) {
    CHECK(std::string(message.c_str()).find('\n') == std::string::npos);
  }
  auto const closed = put("closed.csv", "1,a,b\n");
  ::chmod(folder.path().c_str(), 0755);
  ::chmod(closed.c_str(), 0);
  if (lockstep_test::Unprivileged const now; now)
    CHECK(error(closed) == doctest::Contains("closed.csv: cannot be opened: Permission denied"));
}

TEST_CASE("a value that does not fit the member's type is refused with the line on which the row begins") {
  auto const rows = table<News>("class,title,text\n1,a,\"b\nc\"\n9,d,e\n");
  for (auto const& each : {rows.held, rows.read})
    CHECK_THROWS_WITH_AS(each.refuse(1, "class 9 is not within [1, 4]"),
                         doctest::Contains("rows.csv:4: class 9 is not within"), DataError);
}

TEST_CASE("the fingerprint changes with each byte of the file, and with nothing else") {
  auto const print = [&](std::string const& content) {
    return data::CsvDataset<News>(put("print.csv", content)).fingerprint();
  };
  std::string const content = "1,a,some text\n2,b,more text\n3,c,x\n";
  auto const whole = print(content);
  CHECK(print(content) == whole);
  CHECK(print(content + "\n") != whole);
  for (auto const at : {content.find("a,"), content.find("some"), content.size() - 2}) {
    auto changed = content;
    changed[at] = 'z';
    CHECK(print(changed) != whole);
  }
}

TEST_CASE("quoted values are read back unchanged") {
  auto const cleaned = [](std::string text) {  // characters that text files may not contain are refused, see above
    for (auto& c : text) c = static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\r' ? ' ' : c;
    return text;
  };
  CHECK(rc::check("written rows are read back", [&](std::vector<std::pair<int, std::string>> const& written) {
    RC_PRE(!written.empty());
    std::string content;
    for (auto const& [number, text] : written) {
      content +=
          std::to_string(number) + "," + in_quotes(cleaned(text)) + "," + in_quotes(cleaned(text) + "\"") + "\r\n";
    }
    auto const rows = table<News>(content, {.header = data::CsvHeader::none, .encoding = "bytes"});
    RC_ASSERT(rows.size() == static_cast<Index>(written.size()));
    for (Index i = 0; i < rows.size(); ++i) {
      auto const& [number, text] = written[static_cast<std::size_t>(i)];
      auto const row = rows.get(i);
      RC_ASSERT(row.label == number);
      RC_ASSERT(row.title == cleaned(text));
      RC_ASSERT(row.text == cleaned(text) + "\"");
    }
  }));
}

TEST_CASE("any text is read or refused, and rows that are read have all columns") {
  CHECK(rc::check("no crash", [] {
    auto const content =
        *rc::gen::container<std::string>(rc::gen::element('"', '"', ',', ',', '\n', '\r', 'a', '1', ' '));
    try {
      auto const rows = table<Review>(content);
      RC_ASSERT(rows.size() > 0);
      std::size_t characters = 0;
      for (Index i = 0; i < rows.size(); ++i) characters += rows.get(i).text.size() + rows.get(i).sentiment.size() + 1;
      RC_ASSERT(characters <= content.size());
    } catch (DataError const& error) {
      RC_ASSERT(std::string(error.what()).find("rows.csv:") != std::string::npos);
    }
  }));
}

TEST_CASE("published files are read completely") {
  std::string const shared = LOCKSTEP_SOURCE_DIR "/../shared/data/";
  if (!std::filesystem::exists(shared)) {
    lockstep_test::skip(lockstep_test::Need::shared, "data");
    return;
  }
  data::CsvDataset<News> const articles{shared + "ag_news/train.csv"};
  CHECK(articles.size() == 5000);
  for (Index i = 0; i < articles.size(); ++i) {
    auto const label = articles.get(i).label;
    REQUIRE((label >= 1 && label <= 4));
  }
  data::CsvDataset<Review> const all{shared + "imdb/train.csv", {.header = data::CsvHeader::first_line}};
  CHECK(all.size() == 2000);
  for (Index i = 0; i < all.size(); ++i) {
    auto const sentiment = all.get(i).sentiment;
    REQUIRE((sentiment == "positive" || sentiment == "negative"));
  }
}

TEST_CASE("a number too small for its type becomes 0") {
  struct Small {
    float single;
    double two;
  };
  data::CsvDataset<Small> const rows(
      put("small.csv", "single,two\n1e-46,1e-400\n-0.00001e-60,0.1e-307\n1e-45,-1e-999999999999\n"));
  CHECK(rows.get(0).single == 0);
  CHECK(rows.get(0).two == 0);
  CHECK(rows.get(1).single == 0);
  CHECK(std::signbit(rows.get(1).single));
  CHECK(rows.get(1).two == 1e-308);
  CHECK(rows.get(2).single > 0);
  CHECK(rows.get(2).two == 0);
  for (auto const* large : {"1e39,0", "100000e34,0", "0,1e309", "0,0.0001e999999999999"})
    CHECK_THROWS_WITH_AS(static_cast<void>(data::CsvDataset<Small>(put("large.csv", large)).get(0)),
                         doctest::Contains("out of range for its type"), DataError);
}

TEST_CASE("a first line with an empty name is a header; a first line with only empty fields is a sample") {
  struct Pair {
    std::optional<int> number;
    std::optional<float> value;
  };
  CHECK(data::CsvDataset<Pair>(put("pandas.csv", ",value\n0,1.5\n1,2.5\n")).size() == 2);
  CHECK(data::CsvDataset<Pair>(put("missing.csv", ",\n0,1.5\n")).size() == 2);
  CHECK(data::CsvDataset<Pair>(put("one.csv", ",2.5\n0,1.5\n")).size() == 2);
}

TEST_CASE("pandas' True and False, and numbers with a plus sign") {
  struct Truth {
    bool first, second;
    float number;
  };
  data::CsvDataset<Truth> const rows(put("truth.csv", "a,b,c\nTrue,False,+1e3\nTRUE,false,+0.5\n1,0,-2\n"));
  for (Index i = 0; i < 3; ++i) CHECK((rows.get(i).first && !rows.get(i).second));
  CHECK(rows.get(0).number == 1000);
  CHECK(rows.get(1).number == 0.5f);
  for (auto const* wrong : {"1,0,+", "1,0,+-1", "1,0,++1"})
    CHECK_THROWS_WITH_AS(
        static_cast<void>(data::CsvDataset<Truth>(put("plus.csv", std::string("1,1,1\n") + wrong)).get(1)),
        doctest::Contains("expected a number"), DataError);
}

TEST_CASE("columns that pandas numbers from 0 are a header if there are at least three") {
  struct Three {
    float a, b;
    int label;
  };
  struct Two {
    int a, label;
  };
  auto const write = [](std::string const& text) { return put("numbered.csv", text); };
  data::CsvDataset<Three> const rows{write("0,1,2\n0.5,1.5,1\n2.5,3.5,0\n")};
  CHECK(rows.size() == 2);
  CHECK(rows.get(0).label == 1);
  CHECK(data::CsvDataset<Three>{write("0,1,2\n0,1,2\n")}.size() == 1);
  CHECK(data::CsvDataset<Three>{write("1,2,3\n0.5,1.5,1\n")}.size() == 2);  // a sample
  CHECK(data::CsvDataset<Three>{write("0,1,2.0\n0.5,1.5,1\n"), {}}.size() == 2);
  CHECK(data::CsvDataset<Three>{write("0,1,2\n")}.size() == 1);  // the only row
  CHECK(data::CsvDataset<Three>{write("0,1,2\n0.5,1.5,1\n"), {.header = data::CsvHeader::none}}.size() == 2);
  CHECK(data::CsvDataset<Two>{write("0,1\n5,1\n")}.size() == 2);
  struct Indexed {
    std::optional<int> index;
    float a, b, c;
  };
  CHECK(data::CsvDataset<Indexed>{write(",0,1,2\n0,0.5,1.5,1\n")}.size() == 1);
}

TEST_CASE("fields are converted from another encoding, and bytes that are not UTF-8 are refused with their line") {
  std::string content;
  for (int i = 0; i < 2000; ++i) content += std::to_string(i) + ",caf\xe9,\"la f\xeate\n\"\n";
  auto const path = put("latin.csv", content);
  for (int const threads : {1, 4}) {
    data::CsvDataset<News> const rows(path,
                                      {.header = data::CsvHeader::none, .encoding = "latin-1", .threads = threads});
    REQUIRE(rows.size() == 2000);
    CHECK(rows.get(1999).label == 1999);
    CHECK(rows.get(1999).title == "caf\u00e9");
    CHECK(rows.get(1999).text == "la f\u00eate\n");
  }
  std::string const good = "1,a,b\n";
  std::string many;
  while (many.size() < (std::size_t{9} << 17)) many += good;
  auto const last = many.size() / good.size() + 1;
  auto const bad = put("bad.csv", many + "2,caf\xe9,c\n" + good);
  for (int const threads : {1, 4})
    CHECK_THROWS_WITH_AS(data::CsvDataset<News>(bad, {.header = data::CsvHeader::none, .threads = threads}),
                         doctest::Contains(("bad.csv:" + std::to_string(last) + ": byte " +
                                            std::to_string(many.size() + 5) + " of the file is not UTF-8")
                                               .c_str()),
                         DataError);
  data::CsvDataset<News> const bytes(bad, {.header = data::CsvHeader::none, .encoding = "bytes", .threads = 4});
  CHECK(bytes.get(static_cast<Index>(last) - 1).title == "caf\xe9");
}
