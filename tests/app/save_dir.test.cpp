// SPDX-License-Identifier: Apache-2.0
#include <lockstep/app/save_dir.hpp>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "../unprivileged.hpp"

using namespace lockstep;
namespace fs = std::filesystem;

namespace {

struct Folder {
  fs::path path = fs::temp_directory_path() / ("lockstep-save-dir-" + std::to_string(::getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  std::string at(char const* name) const { return (path / name).string(); }
};

std::string refused(std::string const& directory, std::string const& resume = "never") {
  try {
    app::check_save_dir(directory, resume);
  } catch (ConfigError const& error) {
    return error.what();
  }
  return "";
}

bool contains(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a directory is free if it does not exist, is empty or has no run") {
  Folder const folder;
  CHECK(refused("").empty());
  CHECK(refused(folder.at("new/deep")).empty());
  CHECK_FALSE(fs::exists(folder.at("new")));
  std::ofstream(folder.at("notes.txt")) << "mine";
  CHECK(refused(folder.path.string()).empty());
}

TEST_CASE("a ~ that no shell has expanded is not taken for the name of a new directory") {
  Folder const folder;
  auto const here = fs::current_path();
  fs::current_path(folder.path);
  for (char const* const directory : {"~", "~/runs/new"}) CHECK(contains(refused(directory), ": ~ is not expanded"));
  CHECK(refused("runs/~").empty());
  fs::create_directory("~");
  CHECK(refused("~/runs").empty());
  fs::current_path(here);
}

TEST_CASE("a directory with a run, and a path that is not a directory, are refused by name") {
  Folder const folder;
  fs::create_directory(folder.at("first"));
  CHECK(refused(folder.at("first")).empty());
  fs::create_directory(folder.at("first/checkpoints"));
  CHECK(contains(refused(folder.at("first")), "first: already holds a run (checkpoints)"));
  std::ofstream(folder.at("run.json")) << "{}";
  CHECK(contains(refused(folder.path.string()), "already holds a run (run.json)"));
  CHECK(contains(refused(folder.at("run.json")), "is not a directory"));
}

TEST_CASE("--resume continues a run") {
  Folder const folder;
  fs::create_directory(folder.at("checkpoints"));
  CHECK(contains(refused(folder.path.string()), "or resume it with --resume auto"));
  CHECK(refused(folder.path.string(), "auto").empty());
  CHECK(refused(folder.at("new"), "auto").empty());
  auto const file = folder.at("checkpoints/step_7.safetensors");
  CHECK(contains(refused(folder.at("new"), file), "--resume " + file + ": there is no such file"));
  CHECK(contains(refused(folder.at("new"), folder.path.string()), ": is a directory; name a checkpoint in it, or"));
  std::ofstream(file) << "x";
  CHECK(refused(folder.at("new"), file).empty());
  CHECK(contains(refused(folder.path.string(), file), "already holds a run"));
}

TEST_CASE("a directory that could not be created is refused before the start") {
  Folder const folder;
  std::ofstream(folder.at("file")) << "x";
  CHECK(contains(refused(folder.at("file/below/deep")), "below/deep: cannot be created in " + folder.at("file")));
  fs::create_directory(folder.at("fixed"));
  fs::permissions(folder.path, fs::perms::all);
  fs::permissions(folder.at("fixed"), fs::perms(0555));
  if (lockstep_test::Unprivileged const now; now)
    CHECK(contains(refused(folder.at("fixed/new/deep"), "auto"), "fixed: Permission denied; name another directory"));
}

TEST_CASE("a link to a missing directory is refused before the start, also above the directory") {
  Folder const folder;
  fs::create_symlink("gone", folder.path / "link");
  auto const message = folder.at("link") + " is a link to gone, which does not exist; create that directory";
  CHECK(contains(refused(folder.at("link")), "link: cannot be created, because " + message));
  CHECK(contains(refused(folder.at("link/run/1")), message));
  fs::create_directory(folder.at("gone"));
  CHECK(refused(folder.at("link/run/1")).empty());
}

TEST_CASE("--init-from names a file") {
  Folder const folder;
  CHECK_NOTHROW(app::check_init_from(""));
  CHECK_THROWS_WITH_AS(app::check_init_from(folder.at("none")),
                       doctest::Contains("none: there is no such file; name a"), ConfigError);
  CHECK_THROWS_WITH_AS(app::check_init_from(folder.path.string()),
                       doctest::Contains(": is a directory; name a file in"), ConfigError);
  std::ofstream(folder.at("a.safetensors")) << "x";
  CHECK_NOTHROW(app::check_init_from(folder.at("a.safetensors")));
}

TEST_CASE("a directory serves one process at a time") {
  Folder const folder;
  {
    app::SaveDirLock held;
    held = app::SaveDirLock(folder.path.string());
    CHECK_THROWS_WITH_AS(app::SaveDirLock(folder.path.string()), doctest::Contains(": another process is using it"),
                         ConfigError);
  }
  app::SaveDirLock const again(folder.path.string());
}

TEST_CASE("an empty directory is removed with its run only if the run created it") {
  Folder const folder;
  {
    app::SaveDirLock held;
    held = app::SaveDirLock(folder.at("runs/first"));
    CHECK(fs::is_directory(folder.at("runs/first")));
  }
  CHECK_FALSE(fs::exists(folder.at("runs/first")));
  static_cast<void>(app::SaveDirLock(folder.at("runs")));
  CHECK(fs::is_directory(folder.at("runs")));
  {
    app::SaveDirLock const held(folder.at("runs/second"));
    std::ofstream(folder.at("runs/second/run.json")) << "{}";
  }
  CHECK(fs::exists(folder.at("runs/second/run.json")));
}

TEST_CASE("a directory that cannot be created is refused with the system's reason") {
  Folder const folder;
  std::ofstream(folder.at("file")) << "x";
  CHECK_THROWS_AS(app::SaveDirLock(folder.at("file/below")), ConfigError);
}

TEST_CASE("a directory without write permission is refused before the start") {
  Folder const folder;
  fs::permissions(folder.path, fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_exec);
  if (lockstep_test::Unprivileged const now; now)
    CHECK(contains(refused(folder.path.string()), ": cannot be written to: Permission denied; change its permissions"));
}

TEST_CASE("an output file may be in the directory that the run creates") {
  Folder const folder;
  auto const check = [](std::string const& path, std::string const& save_dir) {
    app::check_output_file("--predictions", path, {}, save_dir);
  };
  check(folder.at("new/run/a.csv"), folder.at("new/run"));
  check(folder.at("new/run/a.csv"), folder.at("new/../new/run/"));
  check("none here/a.csv", fs::absolute("none here").string());
  CHECK_FALSE(fs::exists(folder.at("new")));
  CHECK_THROWS_AS(check(folder.at("new/run/deeper/a.csv"), folder.at("new/run")), DataError);
  CHECK_THROWS_AS(check(folder.at("new/run/"), folder.at("new/run")), DataError);
  fs::create_directories(folder.at("new/run/a.csv"));
  CHECK_THROWS_AS(check(folder.at("new/run/a.csv"), folder.at("new/run")), DataError);
}

TEST_CASE("an output file may not be one of the inputs, by any name, and a pipe or a device will do") {
  Folder const folder;
  std::ofstream(folder.at("train.csv")) << "data";
  fs::create_symlink("train.csv", folder.at("link.csv"));
  auto const refuses = [&](std::string const& path, std::vector<std::string> const& inputs) {
    CHECK_THROWS_WITH_AS(app::check_output_file("--predictions", path, inputs),
                         doctest::Contains("is a file that the run reads, and would be replaced"), ConfigError);
  };
  refuses(folder.at("train.csv"), {"", folder.at("train.csv")});
  refuses(folder.at("link.csv"), {folder.at("train.csv")});
  fs::create_directories(folder.at("data/part"));
  std::ofstream(folder.at("data/part/labels")) << "data";
  refuses(folder.at("data/part/labels"), {folder.at("data")});
  refuses(folder.at("data/../data/part/labels"), {folder.at("data/part/")});
  app::check_output_file("--predictions", folder.at("data/new"), {folder.at("data")});
  app::check_output_file("--predictions", folder.at("train.csv"), {folder.at("data"), folder.at("none")});
  app::check_output_file("--predictions", folder.at("new.csv"), {folder.at("train.csv")});
  app::check_output_file("--predictions", "/dev/null", {"/dev/null"});
  CHECK_THROWS_WITH_AS(app::check_output_file("--predictions", folder.at("none/a.csv"), {}),
                       ("--predictions " + folder.at("none/a.csv") +
                        ": cannot create the file: No such file or directory; "
                        "make its folder first; ~ is not expanded")
                           .c_str(),
                       DataError);
  CHECK_FALSE(fs::exists(folder.at("new.csv")));
  std::ifstream in(folder.at("train.csv"));
  std::string text;
  CHECK((in >> text && text == "data"));
}
