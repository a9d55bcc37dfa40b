// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <lockstep/core/error.hpp>
#include <lockstep/scaling/study/study_entry.hpp>

#include "temporary_folder.hpp"

using namespace lockstep;
using namespace lockstep_test;
using scaling::StudyEntry;

TEST_CASE("an entry of a study is read as it was written") {
  TemporaryFolder const folder;
  StudyEntry entry{.name = "news-b16-dp4-r2", .example = "text_classification", .parallel = "dp", .devices = 4};
  entry.batch_size = 16;
  entry.data = "a \"b\", c.csv";
  entry.repeat = 2;
  entry.command = {"/bin/text_classification", "--seed", "2"};
  entry.processors = 8;
  entry.state = StudyEntry::State::failed;
  entry.exit_code = 137;
  entry.message = "no memory";
  entry.seconds = 1.5;
  entry.peak_resident_bytes = 123456789012;
  write_file(folder / "x.entry.json", entry.json());
  auto const read = StudyEntry::read(folder / "x.entry.json");
  CHECK(read.name == entry.name);
  CHECK(read.example == entry.example);
  CHECK(read.parallel == "dp");
  CHECK(read.devices == 4);
  CHECK(read.batch_size == Index{16});
  CHECK(read.data == entry.data);
  CHECK(read.repeat == 2);
  CHECK(read.command == entry.command);
  CHECK(read.processors == 8);
  CHECK(read.state == StudyEntry::State::failed);
  CHECK(read.exit_code == 137);
  CHECK(read.message == "no memory");
  CHECK(read.seconds == 1.5);
  CHECK(read.peak_resident_bytes == 123456789012);

  StudyEntry const plain{.name = "a", .example = "b", .parallel = "single"};
  write_file(folder / "y.entry.json", plain.json());
  CHECK_FALSE(StudyEntry::read(folder / "y.entry.json").batch_size.has_value());
  CHECK(StudyEntry::read(folder / "y.entry.json").state == StudyEntry::State::planned);
  write_file(folder / "z.entry.json", "{}");
  CHECK_THROWS_AS(StudyEntry::read(folder / "z.entry.json"), DataError);
  CHECK_THROWS_AS(StudyEntry::read(folder / "missing"), DataError);
}
