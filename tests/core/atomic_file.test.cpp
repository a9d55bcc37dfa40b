// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/atomic_file.hpp>

#include <doctest/doctest.h>

#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

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
