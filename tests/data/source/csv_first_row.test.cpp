// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/source/csv_first_row.hpp>

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "../../temporary_folder.hpp"

using namespace lockstep;

TEST_CASE("the first row's fields are unquoted, whatever follows them") {
  lockstep_test::TemporaryFolder const folder;
  auto const first = [&](std::string const& content) {
    lockstep_test::write_file(folder / "a.csv", content);
    return data::csv_first_row(folder / "a.csv");
  };
  CHECK(first("review,sentiment\n\"never closed") == std::vector<std::string>{"review", "sentiment"});
  CHECK(first("\n\"a \"\"b\"\"\",,\"c\nd\"\n") == std::vector<std::string>{"a \"b\"", "", "c\nd"});
  CHECK(first("alone") == std::vector<std::string>{"alone"});
  CHECK_THROWS_AS(first("\n"), DataError);
  CHECK_THROWS_AS(first("a,\"b"), DataError);
  CHECK_THROWS_AS(data::csv_first_row(folder / "absent"), DataError);
}

TEST_CASE("the first row is converted from another encoding") {
  lockstep_test::TemporaryFolder const folder;
  lockstep_test::write_file(folder / "a.csv", "caf\xe9;b\n1;2\n");
  CHECK(data::csv_first_row(folder / "a.csv", ';', "latin-1") == std::vector<std::string>{"caf\u00e9", "b"});
  CHECK_THROWS_AS(data::csv_first_row(folder / "a.csv", ';'), DataError);

  std::string many = "\"a\nb\";c\n";
  while (many.size() < (1 << 18)) many += "1;2\n";
  lockstep_test::write_file(folder / "a.csv", many + "\xe9;2\n");  // no ASCII, which is not read
  CHECK(data::csv_first_row(folder / "a.csv", ';', "ascii") == std::vector<std::string>{"a\nb", "c"});
  lockstep_test::write_file(folder / "a.csv", "\n\"a;\xe9");
  CHECK_THROWS_WITH_AS(data::csv_first_row(folder / "a.csv", ';', "latin-1"), doctest::Contains("a.csv:2: a quoted"),
                       DataError);
  CHECK_THROWS_WITH_AS(data::csv_first_row(folder / "a.csv", ';', "ascii"), doctest::Contains("a.csv:2: "), DataError);
}
