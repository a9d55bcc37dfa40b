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

TEST_CASE("nine channels in order, labels from 0, people as groups") {
  Folder const folder;
  auto const har = folder.open();
  REQUIRE(har.size() == 2);
  CHECK(har.get(0).label == 4);
  CHECK(har.get(1).label == 0);
  REQUIRE(har.get(1).signals.size() == 128);
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
}

TEST_CASE("what is missing or damaged is named by file and line") {
  auto const refused = [](std::string const& name, std::string const& text, char const* why) {
    Folder const folder;
    write_file(folder / ("train/" + name), text);
    CHECK_THROWS_WITH_AS(folder.open(), doctest::Contains(why), DataError);
  };
  refused("y_train.txt", "5\n", "is the last of 2 rows, and there are 1 labels");
  refused("y_train.txt", "5\n7\n", "y_train.txt:2: a class from 1 to 6 is expected, found \"7\"");
  refused("y_train.txt", "5\n1.5\n", "a class from 1 to 6");
  refused("y_train.txt", "5\nx\n", "a number is expected, found \"x\"");
  refused("y_train.txt", "5\n1 2\n", "has 2 numbers; 1 are expected");
  refused("y_train.txt", "5\nnan\n", "a class from 1 to 6");
  refused("Inertial Signals/body_acc_y_train.txt", "1 2\n1 2\n", "body_acc_y_train.txt:1: has 2 numbers; 128");
  refused("subject_train.txt", "1\n", "is the last of 1 rows");
  refused("subject_train.txt", "1\n-1\n", "a subject's number");
  Folder const folder;
  std::filesystem::remove(folder.signals("body_gyro_z"));
  CHECK_THROWS_WITH_AS(folder.open(), doctest::Contains("body_gyro_z_train.txt: cannot be opened"), DataError);
}
