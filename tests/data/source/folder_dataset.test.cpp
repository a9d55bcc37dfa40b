// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/source/folder_dataset.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <sys/stat.h>

#include <doctest/doctest.h>
#include <lockstep/data/collate/ragged_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/sequential_sampler.hpp>

#include "../../temporary_folder.hpp"
#include "../../unprivileged.hpp"

using namespace lockstep;
using namespace lockstep_test;

namespace {

struct Tree : TemporaryFolder {
  Tree() {
    for (auto const* name : {"dogs", "cats", "cats/young"}) std::filesystem::create_directory(path() / name);
    write_file(*this / "dogs/1.bin", "woof");
    write_file(*this / "dogs/2.txt", "not this one");
    write_file(*this / "cats/1.bin", "miaow");
    write_file(*this / "cats/2.bin", "");
    write_file(*this / "cats/young/1.bin", "mi");
  }
};
static_assert(data::ReadsIntoRows<data::FolderDataset, data::RaggedCollate>);

}  // namespace

TEST_CASE("files are sorted by path and classes by folder; files are read in place or alone") {
  Tree const tree;
  data::FolderDataset const files(tree / "**/*.bin");
  CHECK(files.classes() == std::vector<std::string>{"cats", "dogs", "young"});
  REQUIRE(files.size() == 4);
  CHECK(files.name(3) == tree / "dogs/1.bin");
  CHECK(files.get(3).label == 1);
  CHECK(files.get(3).bytes == std::vector<std::uint8_t>{'w', 'o', 'o', 'f'});
  CHECK(files.label(2) == 2);
  CHECK(files.get(1).bytes.empty());
  data::DataLoader loader{files, data::SequentialSampler{}, data::RaggedCollate{}, {.batch_size = 4}};
  loader.start({}, 0, 0, 1);
  auto const held = loader.next();
  auto const& bytes = held.batches()[0][&data::FileSample::bytes];
  CHECK(std::string(bytes.values.span().begin(), bytes.values.span().end()) == "miaowmiwoof");
}

TEST_CASE("given classes number the files of a folder that lacks some of them") {
  Tree const tree;
  data::FolderDataset const training(tree / "**/*.bin"), dogs(tree / "dogs/*.bin", training.classes());
  CHECK(dogs.get(0).label == 1);
  CHECK(dogs.classes() == training.classes());
  CHECK_THROWS_WITH_AS(data::FolderDataset(tree / "**/*.bin", {"dogs", "cat"}),
                       doctest::Contains("cats/1.bin: its folder \"cats\" is not one of the 2 classes that were given "
                                         "(the nearest is \"cat\"); move the file"),
                       DataError);
  CHECK_THROWS_WITH_AS(data::FolderDataset(tree / "**/*.bin", {"dogs", "cats", "dogs"}),
                       doctest::Contains("the class \"dogs\" is given twice"), ConfigError);
}

TEST_CASE("changed and removed files cause errors that name them") {
  Tree const tree;
  data::FolderDataset const files(tree / "*/1.bin");
  auto const print = files.fingerprint();
  write_file(tree / "cats/1.bin", "mew");
  CHECK_THROWS_WITH_AS(static_cast<void>(files.get(0)), doctest::Contains("has 3 bytes, and had 5"), DataError);
  CHECK(data::FolderDataset(tree / "*/1.bin").fingerprint() != print);
  write_file(tree / "cats/1.bin", "miaowww");
  CHECK_THROWS_WITH_AS(static_cast<void>(files.get(0)), doctest::Contains("has more bytes, and had 5"), DataError);
  std::filesystem::remove(tree / "dogs/1.bin");
  CHECK_THROWS_WITH_AS(static_cast<void>(files.get(1)), doctest::Contains("dogs/1.bin: cannot be opened"), DataError);
  CHECK_THROWS_WITH_AS(data::FolderDataset(tree / "*.none"), doctest::Contains("matches no file"), DataError);
}

TEST_CASE("links to class folders are followed, except to a folder that contains them") {
  TemporaryFolder const tree;
  for (auto const* name : {"set/cat", "set/dog", "disk/owl"}) {
    std::filesystem::create_directories(tree / name);
    write_file(tree / (std::string(name) + "/1.bin"), name);
  }
  std::filesystem::create_directory_symlink("../disk/owl", tree / "set/owl");
  std::filesystem::create_directory_symlink("../..", tree / "disk/owl/up");
  std::filesystem::create_directory_symlink(".", tree / "set/self");
  std::filesystem::create_directory_symlink("nowhere", tree / "set/dangling");
  data::FolderDataset const all(tree / "set/**/*.bin"), flat(tree / "set/*/*.bin");
  CHECK(flat.classes() == std::vector<std::string>{"cat", "dog", "owl"});
  CHECK(flat.size() == 3);
  std::vector<std::string> names;
  for (Index i = 0; i < all.size(); ++i) names.push_back(all.name(i));
  CHECK(names == std::vector<std::string>{tree / "set/cat/1.bin", tree / "set/dog/1.bin", tree / "set/owl/1.bin"});
}

TEST_CASE("a file that matches a pattern in two ways is one sample") {
  TemporaryFolder const tree;
  std::filesystem::create_directories(tree / "b/b");
  write_file(tree / "b/b/1.bin", "x");
  CHECK(data::FolderDataset(tree / "**/b/**/1.bin").size() == 1);
  CHECK(data::FolderDataset(tree / "**/**/1.bin").size() == 1);
}

TEST_CASE(
    "a file that is removed or truncated during training fails its batch by name, or is skipped; other batches "
    "arrive") {
  for (bool const gone : {true, false}) {
    for (auto const policy : {data::OnFailure::raise, data::OnFailure::skip}) {
      Tree const tree;
      data::FolderDataset const files(tree / "**/*.bin");
      data::DataLoader loader{files,
                              data::SequentialSampler{},
                              data::RaggedCollate{},
                              {.batch_size = 2, .workers = 0, .on_failure = policy}};
      loader.start({}, 0, 0, 2);
      CHECK(loader.next().rows() == 2);
      gone ? static_cast<void>(std::filesystem::remove(tree / "dogs/1.bin")) : write_file(tree / "dogs/1.bin", "wo");
      auto const rest = [&] {  // rest of the epoch: the young cat and the dog
        if (policy == data::OnFailure::skip) {
          CHECK(loader.next().rows() == 1);
        } else {
          CHECK_THROWS_WITH_AS(static_cast<void>(loader.next()), doctest::Contains("dogs/1.bin"), DataError);
        }
      };
      rest();
      CHECK(loader.next().rows() == 2);
      rest();
    }
  }
}

TEST_CASE(
    "unreadable files and folders cause errors that name them, also during the search, so nothing is skipped "
    "silently") {
  Tree const tree;
  ::chmod(tree.path().c_str(), 0755);
  data::FolderDataset const files(tree / "**/*.bin");
  auto const cats = tree / "cats", dog = tree / "dogs/1.bin";
  ::chmod(dog.c_str(), 0);
  ::chmod(cats.c_str(), 0);
  if (Unprivileged const now; now) {
    CHECK_THROWS_WITH_AS(static_cast<void>(files.get(3)),
                         doctest::Contains("dogs/1.bin: cannot be opened: Permission denied"), DataError);
    for (auto const* pattern : {"**/*.bin", "cats/*", "cats/1.bin"})
      CHECK_THROWS_WITH_AS(data::FolderDataset(tree / pattern),
                           doctest::Contains(": cannot be searched: Permission denied"), DataError);
    CHECK(data::FolderDataset(tree / "dogs/*").size() == 2);
  }
  ::chmod(cats.c_str(), 0700);
}
