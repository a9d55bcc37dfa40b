// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/atomic_file.hpp>

#include <doctest/doctest.h>

#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <lockstep/core/clock.hpp>

#include "temporary_folder.hpp"

using namespace lockstep;

namespace {

void write_text(std::string const& path, std::string const& text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace

TEST_CASE("a named pipe is written to, gets its end, and stays a pipe") {
  lockstep_test::TemporaryFolder folder;
  auto const path = folder / "pipe";
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  { AtomicFile const only_checked(path); }  // does not open the pipe: its reader would see an end
  std::string received;
  std::thread reader([&] {
    std::ifstream in(path);
    received.assign(std::istreambuf_iterator<char>(in), {});
  });
  {
    AtomicFile file(path);
    CHECK(file.is_stream());
    file.write("id,label\n");
    file.write("1,2\n");
    file.commit();
  }
  reader.join();
  CHECK(received == "id,label\n1,2\n");
  CHECK(std::filesystem::is_fifo(path));
  CHECK(folder.entries() == 1);
}

TEST_CASE("a wait for the reader of a pipe ends when a stop is requested, before and after the pipe is full") {
  lockstep_test::TemporaryFolder folder;
  auto const path = folder / "pipe";
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  std::stop_source stop;
  std::thread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    stop.request_stop();
  });
  auto const before = Clock::seconds();
  AtomicFile file(path, AtomicFile::Order::sequential, stop.get_token());
  CHECK_THROWS_WITH_AS(file.write("text"), doctest::Contains("a stop was requested while the pipe waited"), DataError);
  stopper.join();
  int const reader = ::open(path.c_str(), O_RDONLY | O_NONBLOCK);  // which takes nothing
  REQUIRE(reader >= 0);
  CHECK_THROWS_WITH_AS(file.write(std::string(1'000'000, 'x')), doctest::Contains("a stop was requested"), DataError);
  CHECK(Clock::seconds() - before < 2);
  ::close(reader);
}

TEST_CASE("a link at a temporary name that is known is not followed, and temporary names are not known") {
  lockstep_test::TemporaryFolder folder;
  auto const victim = folder / "victim", path = folder / "run.json";
  lockstep_test::write_file(victim, "of another user");
  for (int i = 0; i < 4; ++i)  // the names of earlier versions
    REQUIRE(::symlink(victim.c_str(),
                      (path + "." + std::to_string(::getpid()) + "-" + std::to_string(i) + ".partial").c_str()) == 0);
  std::vector<std::string> names;
  for (int i = 0; i < 2; ++i) {
    AtomicFile file(path);
    for (auto const& entry : std::filesystem::directory_iterator(folder.path()))
      if (auto const name = entry.path().filename().string(); !entry.is_symlink() && name.ends_with(".partial"))
        names.push_back(name);
    file.write("text");
    file.commit();
  }
  REQUIRE(names.size() == 2);
  CHECK(names[0] != names[1]);
  CHECK(lockstep_test::read_file(victim) == "of another user");
  CHECK(lockstep_test::read_file(path) == "text");
}

TEST_CASE("another user's link in a folder where everybody may write is refused") {
  if (::geteuid() != 0) return;  // only root can make such a link
  lockstep_test::TemporaryFolder folder;
  auto const shared = folder / "shared", victim = folder / "victim", link = shared + "/table.csv";
  std::filesystem::create_directory(shared);
  REQUIRE(::chmod(shared.c_str(), 01777) == 0);
  lockstep_test::write_file(victim, "of root");
  REQUIRE(::symlink(victim.c_str(), link.c_str()) == 0);
  write_text(link, "by the user's own link");
  CHECK(lockstep_test::read_file(victim) == "by the user's own link");
  REQUIRE(::lchown(link.c_str(), 12345, 12345) == 0);
  CHECK_THROWS_WITH_AS(write_text(link, "text"), doctest::Contains("is a symbolic link of another user"), DataError);
  CHECK(lockstep_test::read_file(victim) == "by the user's own link");
  REQUIRE(::chmod(shared.c_str(), 0755) == 0);  // where only the owner could have made it
  write_text(link, "text");
  CHECK(lockstep_test::read_file(victim) == "text");
}

TEST_CASE("permissions follow the umask, or the replaced file without its set-user-ID bit") {
  lockstep_test::TemporaryFolder folder;
  auto const path = folder / "file";
  auto const before = ::umask(027);
  write_text(path, "new");
  ::umask(before);
  struct ::stat found {};
  REQUIRE(::stat(path.c_str(), &found) == 0);
  CHECK((found.st_mode & 07777) == 0640);
  REQUIRE(::chmod(path.c_str(), 04755) == 0);
  write_text(path, "newer");
  REQUIRE(::stat(path.c_str(), &found) == 0);
  CHECK((found.st_mode & 07777) == 0755);
}

TEST_CASE("a character device stays a device") {
  write_text("/dev/null", "text");
  CHECK(std::filesystem::is_character_file("/dev/null"));
  lockstep_test::TemporaryFolder folder;
  auto const own = folder / "null";
  if (::mknod(own.c_str(), S_IFCHR | 0666, ::makedev(1, 3)) != 0) return;  // only root may make one
  write_text(own, "text");
  CHECK(std::filesystem::is_character_file(own));
  CHECK(folder.entries() == 1);
}

TEST_CASE("a link to a device or a pipe leads there") {
  lockstep_test::TemporaryFolder folder;
  REQUIRE(::symlink("/dev/null", (folder / "link").c_str()) == 0);
  write_text(folder / "link", "text");
  CHECK(std::filesystem::is_symlink(folder / "link"));
  CHECK(std::filesystem::is_character_file("/dev/null"));
  CHECK(folder.entries() == 1);
}

TEST_CASE("a file that a descriptor names is appended to, as /dev/stdout of a program whose output goes to a file") {
  lockstep_test::TemporaryFolder folder;
  auto const path = folder / "log";
  int const descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT, 0600);
  REQUIRE(descriptor >= 0);
  REQUIRE(::write(descriptor, "before\n", 7) == 7);
  for (std::string const base : {"/proc/self/fd/", "/dev/fd/"}) write_text(base + std::to_string(descriptor), "rows\n");
  struct ::stat by_name {
  }, by_descriptor{};
  REQUIRE(::stat(path.c_str(), &by_name) == 0);
  REQUIRE(::fstat(descriptor, &by_descriptor) == 0);
  ::close(descriptor);
  CHECK(by_name.st_ino == by_descriptor.st_ino);
  CHECK(lockstep_test::read_file(path) == "before\nrows\nrows\n");
}

TEST_CASE("a socket is refused, and so is a stream for a file whose first bytes are written last") {
  lockstep_test::TemporaryFolder folder;
  auto const path = folder / "socket";
  int const socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{AF_UNIX, {}};
  REQUIRE(path.size() < sizeof address.sun_path);
  path.copy(address.sun_path, path.size());
  REQUIRE(::bind(socket, reinterpret_cast<sockaddr const*>(&address), sizeof address) == 0);
  CHECK_THROWS_WITH_AS(AtomicFile{path}, doctest::Contains("is a socket, which is neither replaced nor written to"),
                       DataError);
  ::close(socket);
  CHECK(std::filesystem::is_socket(path));
  auto const on_null = [] { AtomicFile const file("/dev/null", AtomicFile::Order::overwritten); };
  CHECK_THROWS_WITH_AS(on_null(), doctest::Contains("name a regular file"), DataError);
}

TEST_CASE("the owner of a replaced file is kept, if this process may set it") {
  auto const user = ::geteuid() == 0 ? ::uid_t{12345} : ::geteuid();
  lockstep_test::TemporaryFolder folder;
  auto const path = folder / "theirs";
  lockstep_test::write_file(path, "old");
  REQUIRE(::chown(path.c_str(), user, static_cast<::gid_t>(-1)) == 0);
  write_text(path, "new");
  struct ::stat found {};
  REQUIRE(::stat(path.c_str(), &found) == 0);
  CHECK(found.st_uid == user);
  CHECK(lockstep_test::read_file(path) == "new");
}
