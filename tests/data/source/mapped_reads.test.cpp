// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/source/mapped_reads.hpp>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <lockstep/data/source/open_raw.hpp>

#include "../../temporary_folder.hpp"

using namespace lockstep;
using namespace lockstep_test;

namespace {

constexpr Index width = 300'000;  // bytes of a row: copied with non-temporal stores

/// Row i holds i + 1.
struct File : TemporaryFolder {
  std::string const path = *this / "a.raw";
  explicit File(Index rows) {
    std::string all;
    for (Index i = 0; i < rows; ++i) all.append(static_cast<std::size_t>(width), static_cast<char>(i + 1));
    write_file(path, all);
  }
  [[nodiscard]] data::FileArray open() const { return data::open_raw<std::uint8_t>(path, {width}); }
  void shorten(Index bytes) const { std::filesystem::resize_file(path, static_cast<std::uintmax_t>(bytes)); }
};
std::vector<std::uint8_t> row_of(data::FileArray const& array, Index row) {
  std::vector<std::uint8_t> out(static_cast<std::size_t>(array.width()));
  array.read_rows(row, std::span(out));
  return out;
}
bool all_are(std::vector<std::uint8_t> const& row, Index value) {
  return std::all_of(row.begin(), row.end(), [&](auto each) { return each == value; });
}

}  // namespace

TEST_CASE("rows of several files and of copies come from the mapping") {
  data::MappedReads const leave;
  File const one(1), many(33);
  auto const a = one.open().mapped(leave), b = many.open().mapped(leave), copy = b;
  CHECK(all_are(row_of(a, 0), 1));
  for (Index i = 0; i < 33; ++i) CHECK(all_are(row_of(i % 2 == 0 ? b : copy, i), i + 1));
  CHECK(b.fingerprint() == many.open().fingerprint());
  File const empty(0);
  CHECK(empty.open().mapped(leave).rows() == 0);
}

TEST_CASE("a file truncated while it is mapped causes an error") {
  data::MappedReads const leave;
  for (Index const left : {Index{0}, Index{1}, Index{4096}, 5 * width, 10 * width - 1}) {
    File const file(10), other(3);
    auto const array = file.open().mapped(leave), untouched = other.open().mapped(leave);
    CHECK(all_are(row_of(array, 9), 10));
    file.shorten(left);
    CHECK_THROWS_WITH_AS(row_of(array, 9), doctest::Contains("a.raw: was shortened while it was mapped"), DataError);
    file.shorten(10 * width);  // extended again, with zeros at its end
    if (left < 9 * width) CHECK_THROWS_AS(row_of(array, 9), DataError);
    CHECK(all_are(row_of(untouched, 2), 3));
  }
}

TEST_CASE("a file truncated while rows are copied causes an error") {
  data::MappedReads const leave;
  for (int round = 0; round < 5; ++round) {
    File const file(30);
    auto const array = file.open().mapped(leave);
    std::atomic<int> reads = 0, errors = 0;
    std::vector<std::thread> readers;
    for (int t = 0; t < 2; ++t)
      readers.emplace_back([&] {
        try {
          for (;; ++reads) static_cast<void>(row_of(array, 29));
        } catch (DataError const&) {
          ++errors;
        }
      });
    while (reads < 3) std::this_thread::yield();
    file.shorten(0);
    for (auto& reader : readers) reader.join();
    CHECK(errors == 2);
  }
}

TEST_CASE("a fault in foreign memory goes to the signal handler installed before") {
  File const file(1);
  auto const child = ::fork();
  if (child == 0) {
    ::signal(SIGBUS, [](int) { ::_exit(42); });
    data::MappedReads const leave;
    { data::MappedReads const second; }  // as a library would install
    data::MappedReads const third;
    data::detail::DataFile const open(file.path);
    auto const* const theirs =
        static_cast<char const*>(::mmap(nullptr, width, PROT_READ, MAP_SHARED, open.descriptor(), 0));
    file.shorten(0);
    ::_exit(const_cast<char const volatile*>(theirs)[0]);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 42);
}

TEST_CASE("a fault in foreign memory kills the process by default, and the previous handler is restored") {
  struct ::sigaction before {
  }, after{};
  ::sigaction(SIGBUS, nullptr, &before);
  File const file(1);
  auto const child = ::fork();
  if (child == 0) {
    ::signal(SIGBUS, SIG_DFL);  // a sanitizer has its own handler
    data::MappedReads const leave;
    auto const ours = file.open().mapped(leave);
    data::detail::DataFile const open(file.path);
    auto const* const theirs =
        static_cast<char const*>(::mmap(nullptr, width, PROT_READ, MAP_SHARED, open.descriptor(), 0));
    file.shorten(0);
    ::_exit(const_cast<char const volatile*>(theirs)[0]);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGBUS);
  { data::MappedReads const leave, second; }
  ::sigaction(SIGBUS, nullptr, &after);
  bool const as_before = before.sa_handler == after.sa_handler;
  CHECK(as_before);
}

TEST_CASE("mappings open and close on several threads and leave the signal handler unchanged") {
  struct ::sigaction before {
  }, after{};
  ::sigaction(SIGBUS, nullptr, &before);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      for (int i = 0; i < 3000; ++i) data::MappedReads const mapped;
    });
  for (auto& thread : threads) thread.join();
  ::sigaction(SIGBUS, nullptr, &after);
  CHECK((after.sa_sigaction == before.sa_sigaction));
}
