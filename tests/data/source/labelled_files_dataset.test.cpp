// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/source/labelled_files_dataset.hpp>

#include <unistd.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <lockstep/data/combine/hold_out.hpp>

#include "../../temporary_folder.hpp"

using namespace lockstep;

namespace {

/// Writes a file in the folder, creates missing parent folders and returns its path.
std::string put(lockstep_test::TemporaryFolder const& folder, std::string const& name, std::string const& content) {
  std::filesystem::create_directories((folder.path() / name).parent_path());
  lockstep_test::write_file(folder / name, content);
  return folder / name;
}

/// Returns four-digit numbers, so that a window shows its offset.
std::string ruler(std::size_t bytes) {
  std::string out;
  for (std::size_t i = 0; out.size() < bytes; i += 4) {
    auto const number = std::to_string(i);
    out += std::string(4 - std::min<std::size_t>(4, number.size()), '0') + number.substr(0, 4);
  }
  return out.substr(0, bytes);
}

std::vector<std::string> names(data::LabelledFilesDataset const& files) {
  std::vector<std::string> out;
  for (Index g = 0; g < files.groups(); ++g) out.push_back(std::filesystem::path(files.path(g)).filename());
  return out;
}

}  // namespace

TEST_CASE("windows are cut after the file header, and the pattern gives the class") {
  lockstep_test::TemporaryFolder const folder;
  put(folder, "a/long.h", ruler(4096));
  put(folder, "a/short.h", ruler(1000));
  put(folder, "b/one.txt", ruler(600));
  data::LabelledFilesDataset const files{"c=" + folder / "a/*.h" + ",text=" + folder / "b/*"};
  CHECK(files.classes() == std::vector<std::string>{"c", "text"});
  CHECK(names(files) == std::vector<std::string>{"long.h", "short.h", "one.txt"});
  REQUIRE(files.size() == 8 + 1 + 1);
  for (Index i = 0; i < 8; ++i) {
    CHECK(files.get(i).text == ruler(4096).substr(2048 + static_cast<std::size_t>(i) * 256, 256));
    CHECK(files.get(i).label == 0);
    CHECK(files.group(i) == 0);
  }
  CHECK(files.get(8).text == ruler(1000).substr(500, 256));
  CHECK(files.get(9).text == ruler(600).substr(300, 256));
  CHECK(files.get(9).label == 1);
  CHECK(files.group(9) == 2);
  auto const print = [&] {
    return data::LabelledFilesDataset{"c=" + folder / "a/*.h" + ",text=" + folder / "b/*"}.fingerprint();
  };
  CHECK(print() == files.fingerprint());
  put(folder, "b/one.txt", ruler(700));
  CHECK(print() != files.fingerprint());
}

TEST_CASE("short files give a short window or none; caps select evenly spaced windows") {
  lockstep_test::TemporaryFolder const folder;
  put(folder, "a/126", ruler(126));  // 63 bytes after the header
  put(folder, "a/128", ruler(128));
  for (int i = 0; i < 10; ++i) put(folder, "b/" + std::to_string(i), ruler(2048 + 2560));
  auto const patterns = "a=" + folder / "a/*" + ",b=" + folder / "b/*";
  data::LabelledFilesDataset const all{patterns};
  CHECK(all.size() == 1 + 100);
  CHECK(all.get(0).text == ruler(128).substr(64));
  data::LabelledFilesDataset const some{patterns, {.files_per_class = 2, .windows_per_file = 5}};
  CHECK(names(some) == std::vector<std::string>{"128", "0", "5"});
  CHECK(some.size() == 1 + 2 * 5);
  CHECK(some.get(2).text == ruler(2048 + 2560).substr(2048 + 2 * 256, 256));
}

TEST_CASE("duplicate names of a file, empty files and folders are dropped; files are ordered by path") {
  lockstep_test::TemporaryFolder const folder;
  auto const original = put(folder, "a/m.h", ruler(600));
  REQUIRE(::link(original.c_str(), (folder / "a/z_hard.h").c_str()) == 0);
  REQUIRE(::symlink(original.c_str(), (folder / "a/b_soft.h").c_str()) == 0);
  REQUIRE(::symlink((folder / "a").c_str(), (folder / "a/loop").c_str()) == 0);
  REQUIRE(::symlink("/nowhere", (folder / "a/dangling.h").c_str()) == 0);
  put(folder, "a/empty.h", "");
  put(folder, "a/.hidden.h", ruler(600));
  put(folder, "a/folder.h/inner.h", ruler(600));
  put(folder, "a/k.h", ruler(600));
  put(folder, "b/x", ruler(600));
  auto const patterns = "a=" + folder / "a/*.h" + ",b=" + folder / "b/*";
  CHECK(names(data::LabelledFilesDataset{patterns}) == std::vector<std::string>{"b_soft.h", "k.h", "x"});
  auto const deep = "a=" + folder / "a/**/*.h" + ",b=" + folder / "b/**";
  CHECK(names(data::LabelledFilesDataset{deep}) == std::vector<std::string>{"b_soft.h", "inner.h", "k.h", "x"});
  auto const twice = deep + ",a=" + folder / "?/k.h" + ",a=" + folder / "[a]/m.h";
  CHECK(names(data::LabelledFilesDataset{twice}) == names(data::LabelledFilesDataset{deep}));
}

TEST_CASE("a split keeps the windows of a file together") {
  lockstep_test::TemporaryFolder const folder;
  for (int i = 0; i < 20; ++i) put(folder, (i % 2 ? "a/" : "b/") + std::to_string(i), ruler(4096));
  data::LabelledFilesDataset const files{"a=" + folder / "a/*" + ",b=" + folder / "b/*"};
  auto const parts = data::hold_out(files, 0.1, 1);
  std::set<Index> training, evaluation;
  for (Index i = 0; i < parts.training.size(); ++i) training.insert(parts.training.group(i));
  for (Index i = 0; i < parts.evaluation.size(); ++i) evaluation.insert(parts.evaluation.group(i));
  CHECK(evaluation.size() == 2);
  CHECK(training.size() == 18);
  for (auto group : evaluation) CHECK(training.count(group) == 0);
}

TEST_CASE("patterns that are not classes, or that match nothing, are refused") {
  lockstep_test::TemporaryFolder const folder;
  put(folder, "a/x", ruler(600));
  put(folder, "b/tiny", "x");
  auto const a = "a=" + folder / "a/*";
  auto const make = [](std::string const& patterns) { return data::LabelledFilesDataset{patterns}; };
  CHECK_THROWS_WITH_AS(make(a + ",/usr/include/*.h"),
                       doctest::Contains("\"/usr/include/*.h\" is not a class; write NAME=GLOB"), ConfigError);
  CHECK_THROWS_AS(make(a + ",=x"), ConfigError);
  CHECK_THROWS_AS(make(a + ",b="), ConfigError);
  CHECK_THROWS_WITH_AS(make(a), doctest::Contains("names 1 classes"), ConfigError);
  CHECK_THROWS_AS(make(""), ConfigError);
  CHECK_THROWS_WITH_AS(make(a + ",b=" + folder / "nothing/*"), doctest::Contains("of class b matches no file"),
                       DataError);
  CHECK_THROWS_WITH_AS(make(a + ",b=" + folder / "b/*"), doctest::Contains("no file of class b has 64 bytes"),
                       DataError);
  CHECK_THROWS_WITH_AS(make(a + ",b=" + folder / "*/x"), doctest::Contains("without the files of earlier classes"),
                       DataError);
  CHECK_THROWS_AS((data::LabelledFilesDataset{a, {.window_bytes = 0}}), ConfigError);
}

TEST_CASE("a file truncated or removed after indexing is reported by name") {
  lockstep_test::TemporaryFolder const folder;
  put(folder, "a/x", ruler(4096));
  put(folder, "b/y", ruler(4096));
  data::LabelledFilesDataset const files{"a=" + folder / "a/*" + ",b=" + folder / "b/*"};
  put(folder, "a/x", ruler(2100));
  std::filesystem::remove(folder / "b/y");
  CHECK_THROWS_WITH_AS(static_cast<void>(files.get(0)),
                       doctest::Contains("a/x: ends at byte 2100, but reached byte 2304"), DataError);
  CHECK_THROWS_WITH_AS(static_cast<void>(files.get(9)), doctest::Contains("b/y: cannot be opened: No such file"),
                       DataError);
}

TEST_CASE("patterns that match nothing can be skipped, along with their class if nothing else is in it") {
  lockstep_test::TemporaryFolder const folder;
  put(folder, "a/one.h", ruler(600));
  put(folder, "b/one.txt", ruler(600));
  auto const patterns =
      "none=" + folder / "n/*" + ",c=" + folder / "a/*.hh" + ",c=" + folder / "a/*.h" + ",text=" + folder / "b/*";
  CHECK_THROWS_AS(data::LabelledFilesDataset{patterns}, DataError);
  data::LabelledFilesDataset const files{patterns, {.unmatched = data::Unmatched::skip}};
  CHECK(files.classes() == std::vector<std::string>{"c", "text"});
  CHECK(files.get(0).label == 0);
  CHECK(files.get(1).label == 1);
}
