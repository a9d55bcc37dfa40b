// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/source/uci_har_dataset.hpp>

#include <filesystem>
#include <string>

#include <doctest/doctest.h>

#include "../../temporary_folder.hpp"

using namespace lockstep;
using namespace lockstep_test;

namespace {

struct Folder : TemporaryFolder {
  Folder() {
    std::filesystem::create_directories(path() / "train/Inertial Signals");
    write_file(*this / "train/y_train.txt", "5\n1\n");
    int channel = 0;
    for (auto const* kind : {"body_acc", "total_acc", "body_gyro"}) {
      for (auto const* axis : {"x", "y", "z"}) {
        std::string text;
        for (int row = 0; row < 2; ++row) {
          for (int t = 0; t < 128; ++t) text += "  " + std::to_string(channel * 1000 + row * 500 + t) + ".5e+000";
          text += "\n";
        }
        write_file(signals(std::string(kind) + "_" + axis), text);
        ++channel;
      }
    }
  }
  std::string signals(std::string const& name) const {
    return *this / ("train/Inertial Signals/" + name + "_train.txt");
  }
  data::UciHarDataset open() const { return data::UciHarDataset(path().string(), "train"); }
};

}  // namespace

TEST_CASE("nine channels in order, labels from 0, subjects as groups") {
  Folder const folder;
  auto const har = folder.open();
  REQUIRE(har.size() == 2);
  CHECK(har.get(0).label == 4);
  CHECK(har.get(1).label == 0);
  REQUIRE(har.get(1).signals.size() == 128);
  CHECK(har.extent(1) == data::extent_of(har.get(1)));
  CHECK(har.get(1).signals[127][0] == 627.5F);
  CHECK(har.get(0).signals[3][4] == 4003.5F);
  CHECK(har.get(1).signals[0][8] == 8500.5F);
  CHECK(har.groups() == 2);
  CHECK(har.group(1) == 1);
  CHECK(folder.open().fingerprint() == har.fingerprint());
  write_file(folder / "train/y_train.txt", "5\n2\n");
  CHECK(folder.open().fingerprint() != har.fingerprint());
  write_file(folder / "train/subject_train.txt", "7\n7\n");
  CHECK(folder.open().group(0) == 7);
  CHECK(folder.open().groups() == 8);
  CHECK(har.label(1) == 0);
  CHECK(har.name(1) == folder / "train/y_train.txt:2");
  CHECK_NOTHROW(har.check());
}

TEST_CASE("signals stay in their files, and a changed signal changes the fingerprint") {
  Folder const folder;
  auto const har = folder.open();
  auto const path = folder.signals("body_gyro_z");
  auto text = read_file(path);
  auto const place = text.find("8500.5e+000");
  REQUIRE(place != std::string::npos);
  text[place] = '9';
  write_file(path, text);
  CHECK(har.get(1).signals[0][8] == 9500.5F);  // read on demand
  CHECK(har.fingerprint() != folder.open().fingerprint());
}

TEST_CASE("a missing file, unequal row counts, and wrong labels and subjects are refused at construction") {
  auto const refused = [](std::string const& name, std::string const& text, char const* why) {
    Folder const folder;
    write_file(folder / ("train/" + name), text);
    CHECK_THROWS_WITH_AS(folder.open(), doctest::Contains(why), DataError);
  };
  refused("y_train.txt", "5\n", "body_acc_x_train.txt: has 2 rows and");
  refused("y_train.txt", "", "y_train.txt: holds no line");
  refused("y_train.txt", "5\n7\n", "y_train.txt:2: a class from 1 to 6 is expected, found \"7\"");
  refused("y_train.txt", "5\n0\n", "y_train.txt:2: a class from 1 to 6 is expected, found \"0\"");
  refused("y_train.txt", "5\n1.5\n", "a class from 1 to 6");
  refused("y_train.txt", "5\nx\n", "value 1: a finite number is expected, found \"x\"");
  refused("y_train.txt", "5\n1 2\n", "has 2 values; a row of this file must have 1");
  refused("y_train.txt", "5\nnan\n", "y_train.txt:2: value 1: a finite number is expected, found \"nan\"");
  refused("subject_train.txt", "1\n", "subject_train.txt: has 1 rows and");
  refused("subject_train.txt", "1\n-1\n", "a subject's number from 0 to 9999");
  Folder const folder;
  std::filesystem::remove(folder.signals("body_gyro_z"));
  CHECK_THROWS_WITH_AS(folder.open(), doctest::Contains("body_gyro_z_train.txt: cannot be opened"), DataError);
  CHECK_THROWS_WITH_AS(data::UciHarDataset(folder / "none", "train"), doctest::Contains("none/train/y_train.txt"),
                       DataError);
}

TEST_CASE("check and get refuse an invalid row with file, line, value and rule") {
  std::string row;
  for (int t = 0; t < 127; ++t) row += " 0.5";
  auto const refused = [](std::string const& text, std::string const& why) {
    Folder const folder;
    write_file(folder.signals("body_acc_y"), text);
    auto const har = folder.open();
    CHECK_THROWS_WITH_AS(har.check(), doctest::Contains(why.c_str()), DataError);
    CHECK_THROWS_WITH_AS(static_cast<void>(har.get(1)), doctest::Contains(why.c_str()), DataError);
  };
  auto const good = row + " 1\n";
  refused(good + row + "\n", "body_acc_y_train.txt:2: has 127 values; a row of this file must have 128");
  refused(good + row + " 1 2\n", "body_acc_y_train.txt:2: has 129 values; a row of this file must have 128");
  refused(good + row + " nan\n", "body_acc_y_train.txt:2: value 128: a finite number is expected, found \"nan\"");
  refused(good + row + " inf\n", "value 128: a finite number is expected, found \"inf\"");
  refused(good + row + " 1,5\n", "value 128: a finite number is expected, found \"1,5\"");
  refused(good + row + " 1e99\n", "value 128: a finite number is expected, found \"1e99\"");
}
